// The neighbours of a node as a small graph.

import { look } from "./actions.js";
import { colour, el, number, plural, shape, svg } from "./dom.js";
import { edgeLines, kindsOf, legend, said as edgesSaid } from "./kinds.js";
import { slot } from "./memory.js";
import { classOf, state } from "./state.js";
import { attempt } from "./status.js";

const WIDTH = 300;
const HEIGHT = 200;

// The class that a neighbour is labelled with or claimed by.
export const classNow = (node) => classOf(node) ?? state.judged?.of.get(node)?.class ?? null;

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

export function neighbours({ node, neighbours: near, links, neighbours_total: total }) {
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
