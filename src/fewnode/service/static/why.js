// Why a class claims a node, or does not: what it shares with the examples, and how each view votes.

import { lookAt } from "./actions.js";
import { button, el, mark } from "./dom.js";
import { slot } from "./memory.js";

const link = (node) => button(node, lookAt(node), { class: "link" });
const join = (items) => items.map((item, i) => [i > 0 && ", ", item]);

export function reasons(why) {
  if (!why) return el("p", { class: "soft small" }, "Looking for reasons…");
  return [
    why.sentence &&
      el("p", { class: "because" }, `It ${why.sentence.startsWith("nothing") ? "has " : ""}${why.sentence}.`),
    el(
      "dl",
      { class: "reasons small" },
      words(why),
      neighbours(why),
      path(why),
      near("Nearest example", why.nearest_example),
      near("Nearest counter-example", why.nearest_counter),
      votes(why.views),
    ),
  ];
}

const entry = (title, ...told) => [el("dt", {}, title), el("dd", {}, ...told)];

function words({ words: shared }) {
  if (!shared?.length) return null;
  return entry(
    "Shares with examples",
    join(
      shared
        .slice(0, 10)
        .map(({ word, in_examples: n }) => [el("strong", {}, word), n > 1 && el("span", { class: "soft" }, ` ×${n}`)]),
    ),
  );
}

function neighbours({ neighbours: shared }) {
  if (!shared?.length) return null;
  const one = ({ node, kind, example }) => [
    link(node),
    kind && kind !== "edges" && el("span", { class: "soft" }, ` ${kind}`),
    example && example !== node && [" → ", link(example)],
  ];
  return entry("Neighbours in common", join(shared.slice(0, 6).map(one)));
}

function path({ path: way }) {
  if (!way?.length) return null;
  return entry(
    "Path to an example",
    "it",
    way.map(({ node, kind }) => [
      el("span", { class: "soft" }, kind && kind !== "edges" ? ` – ${kind} – ` : " – "),
      link(node),
    ]),
  );
}

function near(title, found) {
  if (!found) return null;
  return entry(
    title,
    found.class && mark(slot(found.class)),
    found.node === null ? "the description" : link(found.node),
    el("span", { class: "soft" }, ` similarity ${found.similarity.toFixed(2)}`),
    found.class && el("span", { class: "soft" }, ` · ${found.class}`),
  );
}

// A vote is drawn from the middle: to the right for the class, to the left against it.
function votes(views) {
  if (!views?.length) return null;
  return entry(
    "How each view votes",
    el(
      "ul",
      { class: "votes" },
      views.map(({ view, vote }) => {
        const inner = el("span", { class: vote < 0 ? "against" : "for" });
        inner.style.width = `${(50 * Math.min(1, Math.abs(vote))).toFixed(1)}%`;
        return el(
          "li",
          {},
          el("span", { class: "name" }, view),
          el("span", { class: "vote", "aria-hidden": "true" }, inner),
          el("span", { class: "num" }, `${vote > 0 ? "+" : vote < 0 ? "−" : ""}${Math.abs(vote).toFixed(2)}`),
        );
      }),
    ),
  );
}
