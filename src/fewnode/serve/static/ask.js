// The question worth asking next, and how accuracy on held-out nodes grows with the answers.

import { add, answerFromData, look, offered, reject, tryIt } from "./actions.js";
import { button, byId, el, mark, percent, plural, redraw, svg } from "./dom.js";
import { labelled, names, on, slot, state } from "./state.js";
import { attempt } from "./status.js";

const WIDTH = 320;
const HEIGHT = 96;
const STEPS = 5;

function story() {
  const box = byId("story");
  box.hidden = !state.model || names().length > 0;
  if (box.hidden) return;
  const steps = [
    ["Point.", "Find a node that is one of what you look for. Nobody has ever told the model what that is."],
    ["Name.", "Start a class with it. One node is enough to begin; five are usually plenty."],
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
  redraw(box, question(), growth());
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
    el("p", { class: "soft small" }, `It seems so, with ${percent(next.probability)}. Asked because ${next.why}.`),
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

function growth() {
  const found = state.progress;
  if (!found)
    return el("div", { class: "growth" }, el("h3", {}, "Held-out accuracy"), el("p", { class: "soft" }, "Measuring…"));
  if (found.mean === null)
    return el(
      "div",
      { class: "growth" },
      el("h3", {}, "Held-out accuracy"),
      el(
        "p",
        { class: "soft small" },
        "Your classes are new to the data too, so nothing here can tell how right they are. Answer a few questions and look at the nodes they claim.",
      ),
    );
  return el(
    "div",
    { class: "growth" },
    el("h3", {}, "Held-out accuracy"),
    el("p", { class: "figure" }, percent(found.mean)),
    curve(state.history),
    el(
      "p",
      { class: "soft small" },
      `from ${plural(labelled(), "labelled node")}, on ${plural(found.nodes, "other node")} whose class the data knows; mean of the classes`,
    ),
    button(`Let the data answer ${STEPS}`, () => attempt(() => answerFromData(STEPS)), {
      class: "plain",
      "data-key": "auto",
      title: "The known classes answer the next questions in your place",
    }),
  );
}

// The scale begins a whole ten percent below the lowest point, and says so.
function curve(points) {
  if (!points.length) return null;
  const ordered = [...points].sort((a, b) => a.labelled - b.labelled);
  const [first, last] = [ordered[0].labelled, Math.max(ordered[0].labelled + STEPS, ordered.at(-1).labelled)];
  const low = Math.max(0, Math.floor(10 * Math.min(...points.map((p) => p.accuracy)) - 0.5) / 10);
  const x = (p) => 8 + ((WIDTH - 56) * (p.labelled - first)) / (last - first);
  const y = (accuracy) => 10 + ((HEIGHT - 20) * (1 - accuracy)) / (1 - low);
  const now = points.at(-1);
  const text = `Accuracy by labelled nodes: ${ordered.map((p) => `${p.labelled}: ${percent(p.accuracy)}`).join(", ")}`;
  return svg(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "curve", role: "img", "aria-label": text },
    [low, 1].map((level) => [
      svg("line", { x1: 0, x2: WIDTH - 40, y1: y(level), y2: y(level), class: "grid" }),
      svg("text", { x: WIDTH, y: y(level) + 4 }, `${Math.round(100 * level)} %`),
    ]),
    svg("path", {
      d: ordered.map((p, i) => `${i ? "L" : "M"}${x(p).toFixed(1)} ${y(p.accuracy).toFixed(1)}`).join(""),
      class: "line",
    }),
    ordered.map((p) =>
      svg("circle", { cx: x(p), cy: y(p.accuracy), r: p === now ? 5 : 2.5, class: p === now ? "now" : "past" }),
    ),
  );
}

on("model classes", story);
on("classes suggestions progress", draw);
