// What a search, a list or a lasso found: many nodes, one answer.

import * as api from "./api.js";
import { answer, decideAll, lookAt, refusal } from "./actions.js";
import { button, byId, el, mark, number, plural, redraw } from "./dom.js";
import { slot } from "./memory.js";
import { refresh } from "./refresh.js";
import { names, on, state, supportOf, tell } from "./state.js";
import { attempt, say } from "./status.js";

const SHOWN = 12;
const box = byId("selection");

export function choose(title, nodes, notes = []) {
  state.selection = { title, nodes, notes };
  tell("selection");
  say(`${plural(nodes.length, "node")} selected.`);
  box.scrollIntoView({ block: "nearest" });
}

export function clear() {
  state.selection = null;
  tell("selection");
}

function draw() {
  box.hidden = !state.selection;
  if (box.hidden) return box.replaceChildren();
  const { title, nodes, notes } = state.selection;
  const all = nodes.map((n) => n.node);
  const told = nodes.filter((n) => n.class !== null);
  redraw(
    box,
    el(
      "header",
      { class: "row" },
      el("h3", { class: "grow name" }, `${plural(nodes.length, "node")} selected`),
      button("×", clear, { class: "quiet", "aria-label": "Forget the selection", "data-key": "forget" }),
    ),
    el("p", { class: "soft small name" }, title),
    notes.map((note) => el("p", { class: "small" }, note)),
    el(
      "p",
      { class: "small picks" },
      nodes
        .slice(0, SHOWN)
        .map(({ node, class: said }, i) => [
          i > 0 && ", ",
          button(node, lookAt(node), { class: "link" }),
          said !== null && ` (${said})`,
        ]),
      nodes.length > SHOWN && ` and ${number(nodes.length - SHOWN)} more`,
    ),
    told.length > 0 && asTold(told),
    state.active !== null && verdicts(all),
    starter(all),
  );
}

const verdicts = (all) =>
  el(
    "p",
    { class: "row" },
    button(
      [mark(slot(state.active)), ` All are ${state.active}`],
      () => done(() => decideAll(all, state.active, "yes")),
      {
        class: "plain",
        "data-key": "all yes",
      },
    ),
    names().includes(state.active) &&
      state.classes.some((c) => c.name === state.active) &&
      button("None is", () => done(() => decideAll(all, state.active, "no")), {
        class: "plain",
        "aria-label": `None is ${state.active}`,
        "data-key": "all no",
      }),
  );

const done = (action) => attempt(async () => (await action(), clear()));

// The list names classes: each node goes to its own.
function asTold(told) {
  const classes = [...new Set(told.map((n) => n.class))];
  const text = `As the list says: ${plural(classes.length, "class")}`;
  return el(
    "p",
    {},
    button(text, () => done(() => takeOver(told, classes)), { class: "solid", "data-key": "told" }),
  );
}

async function takeOver(told, classes) {
  for (const name of classes.filter((c) => !state.classes.some((known) => known.name === c))) {
    const support = told.filter((n) => n.class === name).map((n) => n.node);
    state.version = (await api.put(name, { support, description: null }, state.version)).version;
    state.active = name;
  }
  await refresh(null);
  const rest = told.filter((n) => !supportOf(n.class).includes(n.node));
  if (rest.length) await answer(rest.map(({ node, class: name }) => ({ node, class: name, verdict: "yes" })));
}

function starter(all) {
  const note = el("span", { class: "small error", role: "alert" });
  const field = el("input", { id: "selection-name", maxlength: "200", autocomplete: "off", "data-key": "selection" });
  const start = (event) => {
    event.preventDefault();
    note.textContent = refusal(field.value.trim()) ?? "";
    if (note.textContent) return field.focus();
    done(() => decideAll(all, field.value.trim(), "yes"));
  };
  return el(
    "form",
    { class: "stack", onsubmit: start },
    el("label", { for: "selection-name", class: "small" }, "Start a class with them"),
    el("span", { class: "row grow" }, field, el("button", { class: "plain" }, "Start")),
    note,
  );
}

on("selection classes active", draw);
