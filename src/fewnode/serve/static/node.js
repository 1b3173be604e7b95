// One node: its words, its neighbours as a small graph, what the classes say of it, and where it could be added.

import { add, close, drop, look, refusal } from "./actions.js";
import { bar, button, byId, colour, el, mark, number, percent, plural, redraw, shape, svg } from "./dom.js";
import { shared } from "./describe.js";
import { edgeLines, kindsOf, legend, linkedMembers, said as edgesSaid } from "./kinds.js";
import { betaOf, classOf, names, on, slot, state, verdict } from "./state.js";
import { attempt } from "./status.js";

const card = byId("node");
const WIDTH = 300;
const HEIGHT = 200;

function draw() {
  if (!state.node) return redraw(card, hint());
  const { node } = state.node;
  redraw(
    card,
    el(
      "header",
      { class: "row" },
      el("h3", { id: "node-title", tabindex: "-1", class: "name" }, node),
      button("×", shut, { class: "quiet", "aria-label": `Stop looking at ${node}`, "data-key": "close" }),
    ),
    el("p", { class: "soft small" }, facts(state.node)),
    words(state.node.words),
    actions(node),
    why(node),
    neighbours(state.node),
  );
}

function shut() {
  close();
  byId("search").focus();
}

const hint = () =>
  el(
    "p",
    { id: "node-title", class: "soft small", tabindex: "-1" },
    "Search, or point at the map, to see a node's words and neighbours.",
  );

function facts({ class: known, degree, neighbours_total: total }) {
  const part = Object.entries(state.model.classes).find(([, of]) => of.includes(known))?.[0];
  const learnt = {
    train: "a class the model was trained on",
    valid: "a class that stopped its training",
    test: "a class the model has never seen",
  };
  const said = known === null ? "class unknown" : `in the data: ${known}${part ? `, ${learnt[part]}` : ""}`;
  return `${said} · ${plural(total ?? degree, "neighbour")}`;
}

function actions(node) {
  const own = classOf(node);
  if (own !== null)
    return el(
      "p",
      { class: "row" },
      el("span", { class: "tag" }, mark(slot(own)), `labelled ${own}`),
      button("Take out", () => attempt(() => drop(own, node)), { class: "quiet", "data-key": "out" }),
    );
  const targets = [...names()].sort((a, b) => (b === state.active) - (a === state.active));
  return el(
    "div",
    { class: "actions" },
    targets.length > 0 &&
      el(
        "p",
        { class: "row", role: "group", "aria-label": `Add ${node} to a class` },
        el("span", { class: "small" }, "Add it to"),
        targets.slice(0, 6).map((name) =>
          button([mark(slot(name)), ` ${name}`], () => attempt(() => add(name, node)), {
            class: "plain",
            "aria-label": `Add ${node} to ${name}`,
            "data-key": `add ${name}`,
          }),
        ),
        naming !== node &&
          button("new…", () => startWith(node), {
            class: "plain",
            "aria-label": `Start a class with ${node}`,
            "data-key": "new",
          }),
      ),
    targets.length === 0 || naming === node ? starter(node) : null,
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
    attempt(() => add(name, node));
  };
  return el(
    "form",
    { class: "row", onsubmit: start },
    el("label", { for: "start-name", class: "small" }, "Start a class with it"),
    el("span", { class: "row grow" }, field, el("button", { class: names().length ? "plain" : "solid" }, "Start")),
    note,
  );
}

function why(node) {
  const result = state.judged?.of.get(node);
  if (!result || classOf(node) !== null) return null;
  const { classes } = state.judged;
  const { name } = verdict(result, classes);
  const open = !state.judged.closed && result.member !== null;
  return el(
    "div",
    { class: "why" },
    el("h4", {}, name === null ? "None of the classes claims it" : ["Claimed by ", name]),
    el(
      "ul",
      { class: "bars" },
      [...result.probabilities.entries()]
        .sort((a, b) => b[1] - a[1])
        .slice(0, 5)
        .map(([i, p]) => row([mark(slot(classes[i])), classes[i]], p, slot(classes[i]))),
      open && row("none of these", 1 - result.member, -1),
    ),
    nearest(result.nearest),
    linkedMembers(name, state.node?.node === node ? state.node.neighbours : [], classNow),
    sharedWords(classes[result.probabilities.indexOf(Math.max(...result.probabilities))], result.shared),
  );
}

// The class that a neighbour is labelled with or claimed by.
const classNow = (node) => classOf(node) ?? state.judged?.of.get(node)?.class ?? null;

export const sharedWords = (name, words) =>
  shared(name, words, (node) => button(node, () => attempt(() => look(node)), { class: "link" }));

const row = (name, p, place) =>
  el("li", {}, el("span", { class: "name" }, name), bar(p, place), el("span", { class: "num" }, percent(p)));

// The support nodes that a node is nearest to, and how much each weighs in its class's prototype.
export function nearest(near) {
  if (!near?.length) return null;
  const items = near.map(({ node, class: name }, i) => {
    if (node === null) return [i > 0 && ", ", mark(slot(name)), `the description of ${name}`];
    const beta = betaOf(node);
    return [
      i > 0 && ", ",
      button([mark(slot(name)), node], () => attempt(() => look(node)), { class: "link" }),
      beta !== null && ` β ${beta.toFixed(2)}`,
    ];
  });
  return el("p", { class: "small soft" }, "nearest: ", items);
}

function words(list) {
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

// Neighbours that know each other attract, all repel: settled from a circle, the same every time.
function layout(count, links) {
  const place = Array.from({ length: count }, (_, i) => {
    const turn = (2 * Math.PI * i) / Math.max(1, count);
    return [Math.cos(turn), Math.sin(turn)];
  });
  for (let step = 0; step < 150; step++) {
    const force = place.map(([x, y]) => {
      const r = Math.hypot(x, y) || 1e-6;
      return [(x / r) * (1 - r) * 0.6, (y / r) * (1 - r) * 0.6];
    });
    const pull = (i, j, strength) => {
      const dx = place[j][0] - place[i][0];
      const dy = place[j][1] - place[i][1];
      const d2 = dx * dx + dy * dy + 1e-3;
      const f = strength(Math.sqrt(d2), d2);
      force[i][0] += f * dx;
      force[i][1] += f * dy;
      force[j][0] -= f * dx;
      force[j][1] -= f * dy;
    };
    for (let i = 0; i < count; i++) for (let j = i + 1; j < count; j++) pull(i, j, (_, d2) => -0.02 / d2);
    for (const [i, j] of links) pull(i, j, (d) => 0.25 * (d - 0.35));
    const heat = 0.25 * (1 - step / 150);
    place.forEach((p, i) => {
      p[0] += Math.max(-0.1, Math.min(0.1, force[i][0] * heat));
      p[1] += Math.max(-0.1, Math.min(0.1, force[i][1] * heat));
    });
  }
  const reach = [0, 1].map((axis) => Math.max(0.5, ...place.map((p) => Math.abs(p[axis]))));
  return place.map(([x, y]) => [
    WIDTH / 2 + (x / reach[0]) * (WIDTH / 2 - 16),
    HEIGHT / 2 + (y / reach[1]) * (HEIGHT / 2 - 16),
  ]);
}

function neighbours({ node, neighbours: near, links, neighbours_total: total }) {
  if (!near.length)
    return el("p", { class: "soft small" }, "It has no neighbours: only its words can tell what it is.");
  const at = layout(near.length, links);
  const caption = el("figcaption", { class: "soft small", "aria-live": "polite" });
  const many =
    total > near.length ? `${number(near.length)} of ${number(total)} neighbours` : plural(total, "neighbour");
  const rest = many;
  caption.textContent = rest;
  const line = ([x1, y1], [x2, y2], weak) => svg("line", { x1, y1, x2, y2, class: weak ? "weak" : "" });
  const middle = [WIDTH / 2, HEIGHT / 2];
  const kinds = kindsOf(near);
  const dots = near.map((n, i) => {
    const name = classNow(n.node);
    const own = classOf(n.node) !== null;
    const said = `${n.node}${name === null ? "" : own ? `, labelled ${name}` : `, claimed by ${name}`}${n.class ? `, in the data: ${n.class}` : ""}${edgesSaid(n.edges)}`;
    const tell = () => (caption.textContent = said);
    return svg(
      "g",
      {
        role: "button",
        tabindex: i === 0 ? "0" : "-1",
        "aria-label": `Look at ${said}`,
        "data-key": `near ${n.node}`,
        transform: `translate(${at[i][0].toFixed(1)} ${at[i][1].toFixed(1)})`,
        onclick: () => attempt(() => look(n.node)),
        onfocus: tell,
        onmouseenter: tell,
        onmouseleave: () => (caption.textContent = rest),
        onblur: () => (caption.textContent = rest),
      },
      svg("circle", { r: 12, class: "target" }),
      svg("path", {
        d: name === null ? shape(0) : shape(slot(name)),
        class: `dot ${name === null ? "none" : colour(slot(name))}${own ? " own" : ""}`,
        transform: `scale(${own ? 7 : 5})`,
      }),
    );
  });
  const picture = svg(
    "svg",
    {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      role: "group",
      "aria-label": `Neighbours of ${node}; arrow keys go round, Enter looks`,
      onkeydown: (event) => walk(event, dots),
    },
    links.map(([i, j]) => line(at[i], at[j], true)),
    at.map((p, i) => (near[i].edges?.length ? edgeLines(middle, p, near[i].edges, kinds) : line(middle, p, false))),
    svg("circle", { cx: middle[0], cy: middle[1], r: 8, class: "self" }),
    dots,
  );
  return el("figure", { class: "neighbours" }, picture, legend(kinds), caption);
}

function walk(event, dots) {
  const here = dots.indexOf(document.activeElement);
  if (here < 0) return;
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    return dots[here].dispatchEvent(new Event("click"));
  }
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const next = dots[(here + step + dots.length) % dots.length];
  dots.forEach((dot) => dot.setAttribute("tabindex", dot === next ? "0" : "-1"));
  next.focus();
}

card.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && state.node) shut();
});
on("model node classes judged active", draw);
