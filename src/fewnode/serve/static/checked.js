// How much of what the classes claim is right, by the data's own labels, and how that grows with the answers.

import { answerFromData } from "./actions.js";
import { button, el, mark, number, plural, svg } from "./dom.js";
import { allKnown, labelled, slot, state } from "./state.js";
import { attempt } from "./status.js";

const WIDTH = 320;
const HEIGHT = 96;
const STEPS = 5;
const FEW = 10; // of fewer nodes the service says nothing

const whole = (share) => Math.round(100 * share);
const between = ({ low, high }) => `${whole(low)}–${whole(high)} %`;

export function checked() {
  const found = state.progress;
  return el(
    "div",
    { class: "growth" },
    el("h3", {}, "Is it right?"),
    found ? [said(found), curve(state.history), table(found), found.checked > 0 && compared(found)] : waiting(),
    allKnown() &&
      button(`Let the data answer ${STEPS}`, () => attempt(() => answerFromData(STEPS)), {
        class: "plain",
        "data-key": "auto",
        title: "The known classes answer the next questions in your place",
      }),
  );
}

function waiting() {
  const asked = state.model.open_set || state.classes.length > 1;
  return el("p", { class: "soft" }, asked ? "Checking…" : "Nothing is claimed yet.");
}

// What is claimed, what of it can be checked, and what is right; no share where too few nodes could tell.
function said({ claimed, checked: known, precision, members, recall }) {
  const right = precision
    ? `${whole(precision.value)} % of those are right (${between(precision)}).`
    : known > 0
      ? `too few to say how many are right; ${FEW} are needed.`
      : "";
  const labels =
    known === 0
      ? "none has a label that could tell whether it is right."
      : `${number(known)} ${known === 1 ? "has" : "have"} a known label; ${right}`;
  const there = recall
    ? `Of ${plural(members, "other node")} that the data has in these classes, ${whole(recall.value)} % are found (${between(recall)}).`
    : "";
  return [
    precision && el("p", { class: "figure" }, `${whole(precision.value)} %`),
    el("p", { class: "small" }, `Of ${plural(claimed, "node")} claimed, ${labels} ${there}`),
    known === 0 && el("p", { class: "soft small" }, "Answer a few questions, and look at the nodes that are claimed."),
  ];
}

function table({ per_class: each }) {
  const rows = Object.entries(each).filter(([, own]) => own.precision || own.recall);
  if (rows.length < 1) return null;
  const cell = (share) =>
    el("td", {}, share ? [`${whole(share.value)} %`, el("span", { class: "soft" }, between(share))] : "–");
  return el(
    "table",
    { class: "checked small" },
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        ["class", "right", "found"].map((title) => el("th", { scope: "col" }, title)),
      ),
    ),
    el(
      "tbody",
      {},
      rows.map(([name, own]) =>
        el(
          "tr",
          {},
          el("th", { scope: "row", class: "name" }, mark(slot(name)), name),
          cell(own.precision),
          cell(own.recall),
        ),
      ),
    ),
  );
}

// By which of the data's classes a class is checked: a person's class may be another one than any of them.
function compared({ per_class: each }) {
  const named = Object.entries(each).map(([name, { compared_with: other }]) =>
    other === null ? `${name} with nothing: the data has no name for it` : `${name} with the data’s ${other}`,
  );
  const same = Object.entries(each).every(([name, { compared_with: other }]) => other === name);
  return el(
    "p",
    { class: "soft small" },
    same ? "Compared with the data’s classes of the same names" : `Compared by most labelled nodes: ${named.join("; ")}`,
    "; labelled nodes left out. Ranges are 95 % intervals.",
  );
}

// The scale begins a whole ten percent below the lowest point, and says so.
function curve(points) {
  if (points.length < 2) return null;
  const ordered = [...points].sort((a, b) => a.labelled - b.labelled);
  const [first, last] = [ordered[0].labelled, Math.max(ordered[0].labelled + STEPS, ordered.at(-1).labelled)];
  const shares = points.flatMap((p) => [p.right, p.found]);
  const low = Math.max(0, Math.floor(10 * Math.min(...shares) - 0.5) / 10);
  const x = (p) => 8 + ((WIDTH - 56) * (p.labelled - first)) / (last - first);
  const y = (share) => 10 + ((HEIGHT - 20) * (1 - share)) / (1 - low);
  const now = points.at(-1);
  const told = ordered.map((p) => `${p.labelled}: ${whole(p.right)} % right, ${whole(p.found)} % found`);
  const line = (what) => [
    svg("path", {
      d: ordered.map((p, i) => `${i ? "L" : "M"}${x(p).toFixed(1)} ${y(p[what]).toFixed(1)}`).join(""),
      class: `line ${what}`,
    }),
    ordered.map((p) =>
      svg("circle", {
        cx: x(p),
        cy: y(p[what]),
        r: p === now ? 4.5 : 2.5,
        class: `${p === now ? "now" : "past"} ${what}`,
      }),
    ),
  ];
  return [
    svg(
      "svg",
      {
        viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
        class: "curve",
        role: "img",
        "aria-label": `By labelled nodes: ${told.join("; ")}`,
      },
      [low, 1].map((level) => [
        svg("line", { x1: 0, x2: WIDTH - 40, y1: y(level), y2: y(level), class: "grid" }),
        svg("text", { x: WIDTH, y: y(level) + 4 }, `${whole(level)} %`),
      ]),
      line("found"),
      line("right"),
    ),
    el("p", { class: "soft small" }, `from ${plural(labelled(), "labelled node")}; solid: right, dashed: found`),
  ];
}
