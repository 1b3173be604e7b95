// The classes: what each claims now, what was said yes and no to, and its sentence.

import { activate, decide, discard, draft, erase, lookAt, refusal } from "./actions.js";
import * as describe from "./describe.js";
import { bar, button, byId, el, mark, number, redraw } from "./dom.js";
import { slot } from "./memory.js";
import { claimsOf, classNamed, names, on, state } from "./state.js";
import { attempt } from "./status.js";

const FEW = 8; // answers that are listed before all are asked for
let all = false;

function draw() {
  if (!state.model) return;
  redraw(byId("classes"), names().map(one), naming());
}

// A new class starts with a name; a sentence or its first node follows.
function naming() {
  const note = el("p", { class: "small error", role: "alert" });
  const field = el("input", { id: "class-name", maxlength: "200", autocomplete: "off", "data-key": "class-name" });
  const submit = (event) => {
    event.preventDefault();
    const name = field.value.trim();
    const text = byId("new-sentence")?.value.trim() ?? "";
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
    folded(
      "new",
      names().length === 0 || byId("new-sentence")?.value,
      "What it is, in a sentence (if you like)",
      describe.box(null),
    ),
  );
}

// What is opened or closed by hand stays so.
const opened = new Map();
function folded(key, open, title, content) {
  if (!content) return null;
  const fold = el(
    "details",
    { open: opened.get(key) ?? Boolean(open) },
    el(
      "summary",
      { class: "small soft", "data-key": `fold ${key}`, onclick: () => opened.set(key, !fold.open) },
      title,
    ),
    content,
  );
  return fold;
}

function counts(name, support, rejected, exists) {
  if (!exists) return "";
  const claims = claimsOf(name);
  return [
    claims === null ? "" : `${number(claims)} claimed`,
    el(
      "span",
      { class: "said", "aria-label": `${support.length} yes, ${rejected.length} no` },
      ` ✓${support.length} ✗${rejected.length}`,
    ),
  ];
}

function one(name) {
  const active = name === state.active;
  const { support = [], rejected = [], description = null, description_beta: weight = null } = classNamed(name) ?? {};
  const exists = support.length > 0 || description !== null;
  return el(
    "section",
    { class: `class${active ? " active" : ""}` },
    el(
      "h3",
      {},
      button(
        [
          mark(slot(name)),
          el("span", { class: "name" }, name),
          el("span", { class: "small soft" }, counts(name, support, rejected, exists)),
        ],
        () => attempt(() => activate(name)),
        { "aria-expanded": String(active), "data-key": `class ${name}` },
      ),
    ),
    active &&
      el(
        "div",
        { class: "body" },
        folded(name, description !== null || !support.length, "In a sentence", describe.box(name)),
        yes(name, support, weight, description),
        no(name, rejected),
        footer(name, exists),
      ),
  );
}

// What stands for a class: the nodes that are in it and, if it has one, its description.
function yes(name, support, weight, description) {
  if (support.length === 0) {
    const waits = state.model.describes ? "It waits for a node or a sentence." : "It waits for its first node.";
    const alone = "Its description alone stands for it. Say yes to a node, and it becomes surer.";
    return el("p", { class: "small" }, description === null ? `${waits} Find one, and add it here.` : alone);
  }
  const weighed = [...support].sort((a, b) => (b.beta ?? 0) - (a.beta ?? 0));
  if (weight !== null) weighed.push({ node: null, beta: weight });
  return chips(name, support[0].beta === null ? "Yes" : "Yes, with weight β in the prototype", weighed);
}

const no = (name, rejected) =>
  rejected.length > 0 &&
  chips(
    name,
    "No",
    [...rejected].reverse().map((node) => ({ node, beta: null })),
  );

function chips(name, title, given) {
  const listed = all ? given : given.slice(0, FEW);
  return [
    el("h4", {}, title),
    el(
      "ul",
      { class: "bars chips" },
      listed.map(({ node, beta }) => chip(name, node, beta)),
    ),
    given.length > listed.length &&
      button(`Show all ${number(given.length)}`, () => ((all = true), draw()), {
        class: "link small",
        "data-key": `all ${title}`,
      }),
  ];
}

const chip = (name, node, beta) =>
  el(
    "li",
    {},
    node === null
      ? el("span", { class: "soft" }, "its description")
      : button(node, lookAt(node), { class: "link name", title: node, "data-key": `said ${node}` }),
    beta === null ? el("span") : bar(beta, slot(name)),
    el("span", { class: "num" }, beta?.toFixed(2) ?? ""),
    node !== null &&
      button("×", () => attempt(() => decide(node, name, null)), {
        class: "quiet",
        "aria-label": `Take ${node} out of ${name}`,
        "data-key": `out ${node}`,
      }),
  );

const footer = (name, exists) =>
  exists
    ? button(`Delete ${name}`, () => attempt(() => erase(name)), { class: "quiet small", "data-key": `delete ${name}` })
    : button("Forget this name", discard, { class: "quiet small" });

on("active", () => (all = false));
on("model classes trust active", draw);
