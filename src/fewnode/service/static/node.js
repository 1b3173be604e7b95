// The node that is looked at: its words and neighbours, what the classes say of it and why, and what it could be.

import { close, decide, put, refusal } from "./actions.js";
import { bar, button, byId, el, mark, percent, plural, redraw } from "./dom.js";
import { linkedMembers } from "./kinds.js";
import { slot } from "./memory.js";
import { classNow, neighbours } from "./neighbours.js";
import { find } from "./search.js";
import { classNamed, names, on, saidOf, state } from "./state.js";
import { attempt } from "./status.js";
import { show } from "./views.js";
import { reasons } from "./why.js";

const card = byId("node");

function draw() {
  card.hidden = !state.node;
  if (!state.node) return card.replaceChildren();
  const { node } = state.node;
  redraw(
    card,
    el(
      "header",
      { class: "row" },
      el("h2", { id: "node-title", tabindex: "-1", class: "name" }, node),
      button("×", shut, { class: "quiet", "aria-label": `Stop looking at ${node}`, "data-key": "close" }),
    ),
    facts(state.node),
    words(state.node.words),
    actions(node),
    verdicts(node),
    neighbours(state.node),
  );
}

function shut() {
  close();
  byId("search").focus({ preventScroll: true });
}

const LEARNT = {
  train: "a class the model was trained on",
  valid: "a class that stopped its training",
  test: "a class the model has never seen",
};

function facts({ node, class: known, degree, neighbours_total: total }) {
  const part = Object.entries(state.model.classes).find(([, of]) => of.includes(known))?.[0];
  const learnt = state.model.trained && part ? `, ${LEARNT[part]}` : "";
  const said = known === null ? "class unknown" : `in the data: ${known}${learnt}`;
  return el(
    "div",
    { class: "soft small" },
    `${said} · ${plural(total ?? degree, "neighbour")} · `,
    button("nearest to it", () => (show("find"), find({ near: node })), { class: "link", "data-key": "near" }),
  );
}

function actions(node) {
  const targets = [...names()].sort((a, b) => (b === state.active) - (a === state.active));
  return el(
    "div",
    { class: "actions" },
    targets.slice(0, 6).map((name) => answer(node, name)),
    targets.length === 0 || naming === node
      ? starter(node)
      : button("Start another class with it", () => startWith(node), {
          class: "link small",
          "aria-label": `Start a class with ${node}`,
          "data-key": "new",
        }),
  );
}

function answer(node, name) {
  const said = saidOf(node, name);
  const say = (verdict) => () => attempt(() => decide(node, name, said === verdict ? null : verdict));
  const one = (text, verdict, label) =>
    button(text, say(verdict), {
      class: "plain",
      "aria-label": label,
      "aria-pressed": String(said === verdict),
      "data-key": `${verdict} ${name}`,
    });
  return el(
    "p",
    { class: "row", role: "group", "aria-label": `Is ${node} in ${name}?` },
    el("span", { class: "name grow" }, mark(slot(name)), name),
    one("Yes", "yes", `Yes: add ${node} to ${name}`),
    classNamed(name) && one("No", "no", `No: ${node} is not in ${name}`),
  );
}

let naming = null; // the node that is about to start a class of its own

function startWith(node) {
  naming = node;
  draw();
  byId("start-name").focus();
}

// Starts a class with the node that is looked at.
function starter(node) {
  const note = el("span", { class: "small error", role: "alert" });
  const field = el("input", {
    id: "start-name",
    maxlength: "200",
    autocomplete: "off",
    placeholder: "name of a new class",
    "data-key": "start",
  });
  const start = (event) => {
    event.preventDefault();
    const name = field.value.trim();
    const reason = refusal(name);
    note.textContent = reason ?? "";
    if (reason) return field.focus();
    naming = null;
    attempt(() => put(name, [node], null));
  };
  return el(
    "form",
    { class: "stack", onsubmit: start },
    el("label", { for: "start-name", class: "small" }, "Start a class with it"),
    el("span", { class: "row grow" }, field, el("button", { class: names().length ? "plain" : "solid" }, "Start")),
    note,
  );
}

// What each class says of it, and why the active one does.
function verdicts(node) {
  const result = state.judged?.of.get(node);
  if (!result) return null;
  const { classes, closed } = state.judged;
  return el(
    "div",
    { class: "why" },
    el("h3", {}, result.class === null ? "None of the classes claims it" : ["Claimed by ", result.class]),
    el(
      "ul",
      { class: "bars" },
      [...result.probabilities.entries()]
        .sort((a, b) => b[1] - a[1])
        .slice(0, 5)
        .map(([i, p]) => row([mark(slot(classes[i])), classes[i]], p, slot(classes[i]))),
      !closed && result.member !== null && row("none of these", 1 - result.member, -1),
    ),
    state.model.explains && classNamed(state.active) && [el("h3", {}, `Why ${state.active}`), reasons(state.why)],
    linkedMembers(result.class, state.node?.node === node ? state.node.neighbours : [], classNow),
  );
}

const row = (name, p, place) =>
  el("li", {}, el("span", { class: "name" }, name), bar(p, place), el("span", { class: "num" }, percent(p)));

export function words(list) {
  if (!list.length) return null;
  const top = Math.max(...list.map((w) => Math.abs(w.weight))) || 1;
  return el(
    "div",
    { role: "group", "aria-label": "Its most telling words" },
    el(
      "p",
      { class: "words" },
      list.map(({ word, weight }) => [
        el(
          "span",
          { class: `w${Math.round((3 * Math.abs(weight)) / top)}`, title: `weight ${weight.toPrecision(3)}` },
          word,
        ),
        " ",
      ]),
    ),
  );
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && state.node && !event.defaultPrevented) shut();
});
on("model node classes judged why active", draw);
