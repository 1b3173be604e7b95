// How it works, and the question worth asking next: one key a verdict.

import * as api from "./api.js";
import { decide, look, lookAt, skip, step, tryIt } from "./actions.js";
import { button, byId, el, mark, percent, plural, redraw } from "./dom.js";
import { slot } from "./memory.js";
import { words } from "./node.js";
import { unsaved } from "./queue.js";
import { claimsOf, classNamed, names, on, state } from "./state.js";
import { attempt } from "./status.js";
import { shown } from "./views.js";
import { reasons } from "./why.js";

const panel = byId("judge");
let examples = null; // what a visitor can try at once
let about = null; // what is known of the node that is asked about: {node, found, why}
let keys = true;

// --- the start ---

async function offer() {
  if (examples || !state.model.map) return;
  examples = (await api.examples()).examples;
  story();
}

function story() {
  const box = byId("story");
  box.hidden = !state.model || names().length > 0;
  if (box.hidden) return;
  if (!examples) attempt(offer);
  const steps = [
    ["Point.", "Find one node of what you look for: by name, by words, on the map, or in a list you have."],
    [
      "Name.",
      state.model.describes
        ? "Start a class with it, or say in a sentence what the class is. One of the two is enough."
        : "Start a class with it. One node is enough to begin.",
    ],
    ["Judge.", "Every other node is judged at once. Say yes or no to a few; both teach."],
  ];
  redraw(
    box,
    el(
      "ol",
      {},
      steps.map(([title, text]) => el("li", {}, el("strong", {}, title), " ", text)),
    ),
    examples?.length > 1 &&
      el(
        "p",
        { class: "row" },
        button("Try it", () => attempt(() => tryIt(examples)), { class: "solid", "data-key": "try" }),
        el(
          "span",
          { class: "soft small grow" },
          `starts ${sentence(examples.map((s) => s.class))} with one node each.`,
        ),
      ),
  );
}

const sentence = (list) => (list.length < 2 ? list.join("") : `${list.slice(0, -1).join(", ")} and ${list.at(-1)}`);

// --- the question ---

function draw() {
  if (!state.model || panel.hidden) return;
  redraw(panel, content());
}

function content() {
  if (!names().length)
    return el("p", { class: "soft" }, "There is no class yet. Start one, and the questions come by themselves.");
  if (!classNamed(state.active))
    return el("p", {}, `${state.active} waits for its first node${state.model.describes ? ", or a sentence" : ""}.`);
  if (state.classes.length === 1 && !state.model.open_set)
    return el(
      "p",
      {},
      `${state.model.method_name} cannot tell whether a node is in none of the classes, so it cannot say which nodes are like these. Start a second class to compare with.`,
    );
  if (state.model.suggests === false)
    return el(
      "p",
      {},
      `${state.model.method_name} has no embedding: it cannot say which node is worth asking about. Work on the list.`,
    );
  const next = state.questions?.[0];
  if (!next) return waiting();
  return [question(next), evidence(next), shortcuts()];
}

const waiting = () =>
  el(
    "div",
    { class: "question" },
    el(
      "p",
      { class: "big" },
      state.questions ? "There is nothing left worth asking." : "Looking for the node worth asking about…",
    ),
    state.questions && el("p", { class: "soft" }, "Work on the list, lower the threshold, or start another class."),
  );

function question(next) {
  const others = state.classes.map((c) => c.name).filter((name) => name !== next.class);
  return el(
    "div",
    { class: "question" },
    el("p", { class: `purpose small${next.purpose === "check" ? " check" : ""}` }, purpose(next)),
    el(
      "h2",
      { class: "big", id: "question" },
      "Is ",
      button(next.node, lookAt(next.node), { class: "link name", "data-key": "next" }),
      " one of ",
      el("span", { class: "name" }, mark(slot(next.class)), next.class, "?"),
    ),
    el(
      "p",
      { class: "row verdicts" },
      verdict("Yes", "y", next, "yes", "solid"),
      verdict("No", "n", next, "no", "solid"),
      button("Skip", () => attempt(() => skip(next)), { class: "plain", "data-letter": "s", "data-key": "skip" }),
      others.slice(0, 4).map((name, i) =>
        button([mark(slot(name)), ` ${name}`], () => attempt(() => decide(next.node, name, "yes")), {
          class: "plain",
          "data-letter": String(i + 1),
          "aria-label": `No, ${next.node} is in ${name}`,
          "data-key": `is ${name}`,
        }),
      ),
    ),
    el("p", { class: "soft small" }, facts(next)),
  );
}

const verdict = (text, letter, next, said, look) =>
  button(text, () => attempt(() => decide(next.node, next.class, said, next.purpose === "check")), {
    class: look,
    "aria-label": said === "yes" ? `Yes, ${next.node} is in ${next.class}` : `No, ${next.node} is not in ${next.class}`,
    "aria-keyshortcuts": letter,
    "data-letter": letter,
    "data-key": said,
  });

const purpose = (next) =>
  next.purpose === "check"
    ? "A check: drawn by chance from what is claimed, to measure precision"
    : `Worth asking: ${next.why}`;

function facts(next) {
  const { support, rejected } = classNamed(next.class) ?? { support: [], rejected: [] };
  const claims = claimsOf(next.class);
  return [
    `${percent(next.probability)} likely`,
    next.known && `in the data: ${next.known}`,
    `${plural(support.length + rejected.length, "answer")} so far`,
    claims !== null && `${plural(claims, "node")} claimed`,
  ]
    .filter(Boolean)
    .join(" · ");
}

// What the node is, known before it is asked about; why it may be one changes with every answer.
const fetched = new Map();
function what(node) {
  if (!fetched.has(node)) {
    if (fetched.size > 20) fetched.clear();
    const asked = api.node(node);
    asked.catch(() => fetched.delete(node));
    fetched.set(node, asked);
  }
  return fetched.get(node);
}

// While an answer is on its way there is no asking why: the answer changes it.
async function learn(next, after) {
  const version = state.version;
  const still = () => state.questions?.[0]?.node === next.node;
  const why = unsaved() ? null : api.why(next.node, next.class);
  why?.catch(() => {}); // told below
  const found = await what(next.node);
  if (!still()) return;
  about = { node: next.node, version, found, why: about?.node === next.node ? about.why : null };
  draw();
  if (!why) return;
  about.why = await why;
  if (still()) draw();
  if (after) await what(after.node);
}

function evidence(next) {
  const known = about?.node === next.node ? about : null;
  return el(
    "div",
    { class: "evidence" },
    el(
      "div",
      {},
      el("h3", {}, "What it is"),
      known ? [words(known.found.words), around(known.found)] : el("p", { class: "soft small" }, "…"),
    ),
    el("div", {}, el("h3", {}, "Why it may be one"), reasons(known?.why)),
  );
}

// Who speaks to the computer, or whose hand slips, can turn single keys off.
function shortcuts() {
  const box = el("input", {
    type: "checkbox",
    id: "keys",
    checked: keys,
    "data-key": "keys",
    onchange: () => (keys = box.checked),
  });
  return el(
    "p",
    { class: "check small soft keys" },
    box,
    el(
      "label",
      { for: "keys" },
      "Single keys answer: y yes, n no, s skip, 1–4 another class, u undo, r redo, / search",
    ),
  );
}

function around({ neighbours, neighbours_total: total }) {
  if (!total) return el("p", { class: "soft small" }, "It has no neighbours: only its words can tell what it is.");
  return el(
    "p",
    { class: "small" },
    el("span", { class: "soft" }, `${plural(total, "neighbour")}: `),
    neighbours.slice(0, 8).map(({ node }, i) => [i > 0 && ", ", button(node, lookAt(node), { class: "link" })]),
    total > 8 && " …",
  );
}

let learning = null; // what is being learnt: state, whether an answer is on its way, and node
function asked() {
  draw();
  const next = state.questions?.[0];
  const wanted = next && `${state.version} ${unsaved() > 0} ${next.node}`;
  if (!next || panel.hidden || learning === wanted) return;
  learning = wanted;
  attempt(() => learn(next, state.questions[1])).then((well) => well || (learning = null));
}

// --- one key a verdict ---

const typing = (target) => target.closest?.("input, textarea, select, [role=application], [contenteditable]");

document.addEventListener("keydown", (event) => {
  if (!keys || event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || !state.model) return;
  const next = shown() === "judge" || shown() === "find" ? state.questions?.[0] : null;
  const looked = state.node?.node;
  const said = { y: "yes", n: "no" }[event.key];
  const other = state.classes.filter((c) => c.name !== next?.class)[Number(event.key) - 1]?.name;
  if (event.key === "/") byId("search").focus();
  else if (event.key === "u" && state.journal?.undo) attempt(() => step("undo"));
  else if (event.key === "r" && state.journal?.redo) attempt(() => step("redo"));
  else if (said && next) attempt(() => decide(next.node, next.class, said, next.purpose === "check"));
  else if (event.key === "s" && next) attempt(() => skip(next));
  else if (other && next) attempt(() => decide(next.node, other, "yes"));
  else if (said && shown() !== "list" && looked && classNamed(state.active))
    attempt(() => decide(looked, state.active, said));
  else return;
  event.preventDefault();
});

on("model classes", story);
on("classes questions trust active view", asked);
on("opened", () => state.looking && attempt(() => look(state.looking, false)));
