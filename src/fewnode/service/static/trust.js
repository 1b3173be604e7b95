// What to trust: how many members there may be, how much of what is claimed is right, and from where on to claim.

import { judgeBy } from "./actions.js";
import { byId, el, mark, number, percent, plural, redraw, svg } from "./dom.js";
import { slot } from "./memory.js";
import { answered, on, state } from "./state.js";
import { attempt } from "./status.js";

const WIDTH = 300;
const HEIGHT = 110;
const box = byId("trust");

const whole = (share) => `${Math.round(100 * share)} %`;
const between = ({ low, high }) => `${Math.round(100 * low)}–${whole(high)}`;

function draw() {
  box.hidden = !state.model || !state.classes.length || !answered();
  if (box.hidden) return;
  const own = state.trust?.classes[state.active];
  redraw(
    box,
    el("h2", { id: "trust-title" }, "What to trust"),
    !own && el("p", { class: "soft small" }, state.trust ? "This class claims nothing yet." : "Counting…"),
    own && [headline(own), figures(own), own.known && known(own.known)],
    settings(own),
  );
}

function headline({ claimed, members }) {
  return el(
    "p",
    { class: "headline" },
    mark(slot(state.active)),
    el("strong", {}, number(claimed)),
    " claimed",
    members && [", about ", el("strong", {}, number(Math.round(members.value))), " estimated"],
    members &&
      el("span", { class: "soft small" }, ` (${number(Math.round(members.low))}–${number(Math.round(members.high))})`),
  );
}

function figures({ precision_by_answers: measured, sampled = 0 }) {
  return el(
    "dl",
    { class: "facts small" },
    el("dt", {}, "Precision by your answers"),
    el(
      "dd",
      {},
      measured
        ? [
            el("strong", {}, whole(measured.value)),
            el("span", { class: "soft" }, ` (${between(measured)}), ${plural(measured.n, "check")}`),
          ]
        : el(
            "span",
            { class: "soft" },
            sampled ? `${plural(sampled, "check")} so far: too few to say` : "no check answered yet",
          ),
    ),
    el("dt", {}, "None of these"),
    el(
      "dd",
      {},
      state.trust.none === null || state.trust.none === undefined ? "not told apart" : plural(state.trust.none, "node"),
    ),
  );
}

// Where the data knows labels: no word of the answers flatters them.
function known({ precision, recall, compared_with: other }) {
  const told = (title, share) =>
    share && [
      el("dt", {}, title),
      el(
        "dd",
        {},
        el("strong", {}, whole(share.value)),
        el("span", { class: "soft" }, ` (${between(share)}) of ${number(share.n)}`),
      ),
    ];
  return el(
    "dl",
    { class: "facts small" },
    told("Right, by the data’s labels", precision),
    told("Found, by the data’s labels", recall),
    other &&
      el(
        "dd",
        { class: "soft" },
        other === state.active
          ? "Answered nodes are left out."
          : `Compared with the data’s ${other}; answered nodes are left out.`,
      ),
  );
}

// --- the threshold ---

function settings(own) {
  const { modes, open_set: openSet } = state.model;
  return el(
    "fieldset",
    {},
    el("legend", {}, "From where on to claim"),
    openSet && own?.curve?.length > 1 && curve(own.curve),
    openSet && threshold(own),
    option("Allow “none of these”", "openSet", openSet),
    option("Nodes help each other (transductive)", "transductive", modes.includes("transductive")),
  );
}

function option(text, key, can) {
  const input = el("input", {
    type: "checkbox",
    id: `option-${key}`,
    disabled: !can,
    checked: state.options[key],
    onchange: () => attempt(() => judgeBy(key, input.checked)),
    "data-key": `option ${key}`,
  });
  return el("p", { class: "check" }, input, el("label", { for: input.id }, text));
}

const at = (curve, value) =>
  curve?.reduce((best, p) => (Math.abs(p.threshold - value) < Math.abs(best.threshold - value) ? p : best), curve[0]);

function threshold(own) {
  const value = state.options.threshold;
  const label = el("label", { for: "option-threshold" });
  const tell = (now) => {
    const point = at(own?.curve, now);
    label.replaceChildren(
      `Claim a node from ${Math.round(100 * now)} % on`,
      point ? el("span", { class: "soft small" }, expected(point)) : "",
    );
  };
  const field = el("input", {
    type: "range",
    id: "option-threshold",
    min: "0.05",
    max: "0.95",
    step: "0.05",
    value,
    disabled: !state.options.openSet,
    "data-key": "threshold",
    oninput: () => tell(Number(field.value)),
    onchange: () => attempt(() => judgeBy("threshold", Number(field.value))),
  });
  tell(value);
  return el("div", { class: "stack" }, label, field);
}

const expected = ({ claimed, precision, recall }) =>
  ` ${plural(claimed, "node")}${precision === null ? "" : `, ${whole(precision)} right`}${recall === null ? "" : `, ${whole(recall)} found`}, estimated`;

// Precision and recall by the threshold; where the slider stands is marked.
function curve(points) {
  const x = (t) => 4 + (WIDTH - 44) * t;
  const y = (share) => 8 + (HEIGHT - 16) * (1 - share);
  const line = (what) => {
    const there = points.filter((p) => p[what] !== null);
    return svg("path", {
      class: `line ${what}`,
      d: there.map((p, i) => `${i ? "L" : "M"}${x(p.threshold).toFixed(1)} ${y(p[what]).toFixed(1)}`).join(""),
    });
  };
  const now = state.options.threshold;
  const here = at(points, now);
  const told = `At ${whole(now)}: precision ${here.precision === null ? "unknown" : percent(here.precision)}, recall ${here.recall === null ? "unknown" : percent(here.recall)}, estimated`;
  return [
    svg(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "curve", role: "img", "aria-label": told },
      [0, 0.5, 1].map((level) => [
        svg("line", { x1: 4, x2: WIDTH - 40, y1: y(level), y2: y(level), class: "grid" }),
        svg("text", { x: WIDTH, y: y(level) + 4 }, whole(level)),
      ]),
      svg("line", { x1: x(now), x2: x(now), y1: y(1), y2: y(0), class: "here" }),
      line("recall"),
      line("precision"),
      ["precision", "recall"].map(
        (what) => here[what] !== null && svg("circle", { cx: x(now), cy: y(here[what]), r: 4, class: `now ${what}` }),
      ),
    ),
    el("p", { class: "soft small" }, "solid: precision, dashed: recall; both estimated"),
  ];
}

on("model classes trust active options", draw);
