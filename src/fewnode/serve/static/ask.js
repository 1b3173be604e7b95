// How it works, and the question worth asking next.

import { add, look, offered, reject, tryIt } from "./actions.js";
import { checked } from "./checked.js";
import { button, byId, el, mark, percent, redraw } from "./dom.js";
import { names, on, slot, state } from "./state.js";
import { attempt } from "./status.js";

function story() {
  const box = byId("story");
  box.hidden = !state.model || names().length > 0;
  if (box.hidden) return;
  const steps = [
    ["Point.", "Find a node that is one of what you look for. Nobody has ever told the model what that is."],
    [
      "Name.",
      state.model.describes
        ? "Start a class with it, or say in a sentence what the class is. One of the two is enough to begin."
        : "Start a class with it. One node is enough to begin; five are usually plenty.",
    ],
    ["Watch.", "Every other node is judged at once. Say yes or no to a few, and see it learn."],
  ];
  const sample = offered();
  redraw(
    box,
    el("h3", {}, "Learning from a handful of examples"),
    el(
      "ol",
      {},
      steps.map(([title, text]) => el("li", {}, el("strong", {}, title), " ", text)),
    ),
    sample.length > 1 &&
      el(
        "p",
        { class: "row" },
        button("Try it", () => attempt(tryIt), { class: "solid", "data-key": "try" }),
        el(
          "span",
          { class: "soft small grow" },
          `starts ${sentence(sample.map((s) => s.name))}, which the model has never seen, with one node each.`,
        ),
      ),
  );
}

const sentence = (list) => (list.length < 2 ? list.join("") : `${list.slice(0, -1).join(", ")} and ${list.at(-1)}`);

function draw() {
  const box = byId("ask");
  box.hidden = state.classes.length === 0;
  if (box.hidden) return;
  redraw(box, question(), checked());
}

function question() {
  const next = state.suggestions?.nodes[0];
  if (!next) {
    if (state.model.suggests === false) return null;
    const text = state.suggestions ? "There is nothing left worth asking." : "Looking for the node worth asking about…";
    return el("div", { class: "question" }, el("h3", {}, "Worth asking next"), el("p", { class: "soft" }, text));
  }
  const others = state.classes.map((c) => c.name).filter((name) => name !== next.class);
  const waiting = state.suggestions.stale; // answered; the next question is on its way
  const off = waiting ? { "aria-disabled": "true" } : {};
  const only = (action) => () => waiting || attempt(action);
  const say = (name) => only(() => add(name, next.node))();
  return el(
    "div",
    { class: "question" },
    el("h3", {}, "Worth asking next"),
    el(
      "p",
      { class: "big" },
      "Is ",
      button(next.node, () => attempt(() => look(next.node)), { class: "link name", "data-key": "next" }),
      " one of ",
      el("span", { class: "name" }, mark(slot(next.class)), next.class, "?"),
    ),
    el("p", { class: "soft small" }, `It is with a probability of ${percent(next.probability)}. Asked because ${next.why}.`),
    el(
      "p",
      { class: `row${waiting ? " waiting" : ""}` },
      button("Yes", () => say(next.class), {
        class: "solid",
        "aria-label": `Yes, ${next.node} is in ${next.class}`,
        "data-key": "yes",
        ...off,
      }),
      others.slice(0, 4).map((name) =>
        button([mark(slot(name)), ` ${name}`], () => say(name), {
          class: "plain",
          "aria-label": `No, ${next.node} is in ${name}`,
          "data-key": `is ${name}`,
          ...off,
        }),
      ),
      button("None of these", () => only(() => reject(next.node))(), { class: "plain", "data-key": "none", ...off }),
    ),
  );
}

on("model classes", story);
on("classes suggestions progress", draw);
