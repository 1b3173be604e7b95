// The classes: their labelled nodes with β, and what each claims now.

import { activate, add, discard, draft, drop, erase, judgeBy, look, refusal, reject, save } from "./actions.js";
import * as describe from "./describe.js";
import { bar, button, byId, el, mark, number, percent, redraw } from "./dom.js";
import { claimsOf, classNamed, classOf, names, on, slot, state, verdict } from "./state.js";
import { nearest, sharedWords } from "./node.js";
import { attempt } from "./status.js";

const FIRST = 8;
let shown = FIRST;

function draw() {
  if (!state.model) return;
  redraw(byId("classes"), naming(), names().map(one));
  byId("tools").hidden = state.classes.length === 0;
}

// A new class starts with a name; a sentence or its first node follows.
function naming() {
  const note = el("p", { class: "small error", role: "alert" });
  const field = el("input", { id: "class-name", maxlength: "200", autocomplete: "off", "data-key": "class-name" });
  const submit = (event) => {
    event.preventDefault();
    const name = field.value.trim();
    const sentence = byId("new-sentence");
    const text = sentence?.value.trim() ?? "";
    note.textContent = refusal(name) ?? "";
    if (note.textContent) return field.focus();
    if (text !== "") return describe.now(name, text);
    field.value = "";
    draft(name);
    (byId("class-sentence") ?? byId("search")).focus();
  };
  return el(
    "form",
    { class: "naming", onsubmit: submit },
    el("label", { for: "class-name" }, "A new class"),
    el("span", { class: "row grow" }, field, el("button", { class: "plain" }, "Name it")),
    note,
    describe.box(null),
  );
}

function one(name) {
  const active = name === state.active;
  const { support = [], description = null, description_beta: weight = null } = classNamed(name) ?? {};
  const exists = support.length > 0 || description !== null;
  const claims =
    !exists
      ? state.model.describes
        ? "waits for a node or a sentence"
        : "waits for its first node"
      : state.claims
        ? `claims ${number(claimsOf(name))}`
        : alone()
          ? ""
          : "…";
  return el(
    "section",
    { class: `class${active ? " active" : ""}` },
    el(
      "h3",
      {},
      button(
        [mark(slot(name)), el("span", { class: "name" }, name), el("span", { class: "small soft" }, claims)],
        () => activate(name),
        {
          "aria-expanded": String(active),
          "data-key": `class ${name}`,
        },
      ),
    ),
    active &&
      el(
        "div",
        { class: "body" },
        describe.box(name),
        chips(name, support, description === null ? null : { node: null, beta: weight }),
        exists && claimed(name),
        footer(name, exists),
      ),
  );
}

// What stands for a class: its labelled nodes and, if it has one, its description.
function chips(name, support, said) {
  if (support.length === 0)
    return el(
      "p",
      { class: "small" },
      said === null
        ? "Find a node on the left, or on the map, and add it here."
        : "Its description alone stands for it. Add a node, and it becomes surer.",
    );
  return [
    el("h4", {}, support[0].beta === null ? "Labelled" : "Labelled, with its weight β in the prototype"),
    el(
      "ul",
      { class: "bars chips" },
      [...support, ...(said?.beta == null ? [] : [said])]
        .sort((a, b) => (b.beta ?? 0) - (a.beta ?? 0))
        .map(({ node, beta }) =>
          el(
            "li",
            {},
            node === null
              ? el("span", { class: "soft" }, "its description")
              : button(node, () => attempt(() => look(node)), { class: "link name", "data-key": `support ${node}` }),
            beta === null ? el("span") : bar(beta, slot(name)),
            el("span", { class: "num" }, beta?.toFixed(2) ?? ""),
            node !== null &&
              button("×", () => attempt(() => drop(name, node)), {
                class: "quiet",
                "aria-label": `Take ${node} out of ${name}`,
                "data-key": `out ${node}`,
              }),
          ),
        ),
    ),
  ];
}

function claimed(name) {
  if (alone())
    return el(
      "p",
      { class: "small" },
      `${state.model.method_name} cannot tell whether a node is in none of the classes, so it cannot say which nodes are like these. Start a second class to compare with.`,
    );
  if (!state.claims) return el("p", { class: "small soft" }, "Asking which nodes it claims…");
  const { classes, results, closed_set: closed, note } = state.claims;
  const rows = results
    .map((result) => ({ result, ...verdict(result, classes) }))
    .filter((row) => row.name === name && classOf(row.result.node) === null && !state.answered.has(row.result.node))
    .sort((a, b) => b.probability - a.probability);
  return [
    el("h4", {}, classes.length === 1 ? "More like these" : "It now claims"),
    closed &&
      el(
        "p",
        { class: "small soft" },
        "Every node is given to one of the classes, whether or not it is in any of them.",
        note ? ` ${sentence(note)}` : " “None of these” is turned off below.",
      ),
    rows.length === 0 && el("p", { class: "small soft" }, "No node that is not labelled already."),
    el(
      "ul",
      { class: "claims" },
      rows.slice(0, shown).map((row) => claim(name, row)),
    ),
    rows.length > shown &&
      button(`Show ${Math.min(rows.length, 50) - shown} more`, () => ((shown = 50), draw()), {
        class: "link",
        "data-key": "more",
      }),
  ];
}

const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;

// One class, and a method that cannot tell what is in none.
const alone = () => state.classes.length === 1 && !state.model.open_set;

function claim(name, { result, probability }) {
  const { node } = result;
  return el(
    "li",
    {},
    el(
      "div",
      { class: "row" },
      button(node, () => attempt(() => look(node)), { class: "link name grow", "data-key": `claim ${node}` }),
      el("span", { class: "num" }, percent(probability)),
      button("✓", () => attempt(() => add(name, node)), {
        class: "quiet",
        "aria-label": `Yes, ${node} is in ${name}`,
        "data-key": `yes ${node}`,
      }),
      button("✗", () => attempt(() => reject(node)), {
        class: "quiet",
        "aria-label": `No, ${node} is not in ${name}`,
        "data-key": `no ${node}`,
      }),
    ),
    nearest(result.nearest?.filter((support) => support.class === name && support.node !== null).slice(0, 2)),
    sharedWords(name, result.shared),
  );
}

function footer(name, exists) {
  if (!exists) return button("Forget this name", discard, { class: "quiet small" });
  return button(`Delete ${name}`, () => attempt(() => erase(name)), {
    class: "quiet small",
    "data-key": `delete ${name}`,
  });
}

function option(text, key, can) {
  const box = el("input", {
    type: "checkbox",
    id: `option-${key}`,
    disabled: !can,
    checked: state.options[key],
    onchange: () => attempt(() => judgeBy(key, box.checked)),
  });
  return el("p", {}, box, el("label", { for: box.id }, text));
}

// From which probability on a node is claimed at all: fewer claims are more often right.
function threshold() {
  const value = state.options.threshold;
  const field = el("input", {
    type: "range",
    id: "option-threshold",
    min: "0.05",
    max: "0.95",
    step: "0.05",
    value,
    disabled: !state.options.openSet,
    onchange: () => attempt(() => judgeBy("threshold", Number(field.value))),
  });
  return el("p", {}, el("label", { for: field.id }, `Claim a node from ${Math.round(100 * value)} % on`), field);
}

function tools() {
  const { modes, open_set: openSet, trained, data } = state.model;
  const described = state.classes.some((c) => c.description !== null);
  const source = trained ? "--run RUN" : `--data ${data.name}`;
  const classes = described ? " --classes classes.csv" : "";
  byId("tools").replaceChildren(
    el(
      "fieldset",
      {},
      el("legend", {}, "How nodes are judged"),
      option("Allow “none of these”", "openSet", openSet),
      openSet && threshold(),
      option("Nodes help each other (transductive)", "transductive", modes.includes("transductive")),
    ),
    el(
      "div",
      { class: "export" },
      el("h3", {}, "Take it with you"),
      el(
        "p",
        { class: "row" },
        ["support.csv", ...(described ? ["classes.csv"] : []), "labels.csv"].map((file) =>
          button(file, () => attempt(() => save(file)), { class: "plain", "aria-label": `Download ${file}` }),
        ),
      ),
      el(
        "p",
        { class: "small soft" },
        described ? "fewnode predict takes the first two: " : "fewnode predict takes the first: ",
        el("code", {}, `fewnode predict ${source} --support support.csv${classes} --all --out predictions.csv`),
      ),
    ),
  );
}

on("model options classes", () => state.model && tools());
on("active", () => (shown = FIRST));
on("model classes claims active", draw);
