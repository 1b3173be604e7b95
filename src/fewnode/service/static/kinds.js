// Kinds of edges around a node: a colour and a dash for each, an arrow where it has a direction, width by weight.

import { el, number, svg } from "./dom.js";

const LOOKS = 6;
const GAP = 4; // pixels between two edges of the same nodes
const SELF = 9; // where an arrow to the node in the middle ends
const DOT = 8;

// kind -> how often, the heaviest weight, and whether it has a direction; the most frequent kind first.
export function kindsOf(near) {
  const found = new Map();
  for (const { kind, weight, way } of near.flatMap((n) => n.edges ?? [])) {
    const { count = 0, top = 0, directed = false } = found.get(kind) ?? {};
    found.set(kind, { count: count + 1, top: Math.max(top, weight ?? 0), directed: directed || way !== null });
  }
  const order = [...found.entries()].sort((a, b) => b[1].count - a[1].count || (a[0] < b[0] ? -1 : 1));
  return new Map(order.map(([kind, facts], i) => [kind, { ...facts, look: i % LOOKS }]));
}

const width = ({ weight }, { top }) => (weight === null || !top ? 1.4 : 0.8 + 2.6 * Math.sqrt(weight / top));

function arrow([x, y], [dx, dy], look) {
  const [px, py] = [-dy, dx];
  const points = [
    [x, y],
    [x - 6 * dx + 2.6 * px, y - 6 * dy + 2.6 * py],
    [x - 6 * dx - 2.6 * px, y - 6 * dy - 2.6 * py],
  ];
  return svg("polygon", { points: points.map((p) => p.map((v) => v.toFixed(1)).join()).join(" "), class: `k${look}` });
}

// The edges from the node in the middle to a neighbour, side by side.
export function edgeLines([x1, y1], [x2, y2], edges, kinds) {
  const length = Math.hypot(x2 - x1, y2 - y1) || 1;
  const [dx, dy] = [(x2 - x1) / length, (y2 - y1) / length];
  return edges.map((edge, i) => {
    const aside = GAP * (i - (edges.length - 1) / 2);
    const [ax, ay] = [x1 - dy * aside, y1 + dx * aside];
    const [bx, by] = [x2 - dy * aside, y2 + dx * aside];
    const { look } = kinds.get(edge.kind);
    const style = { "stroke-width": width(edge, kinds.get(edge.kind)).toFixed(1), class: `edge k${look}` };
    return [
      svg("line", { x1: ax.toFixed(1), y1: ay.toFixed(1), x2: bx.toFixed(1), y2: by.toFixed(1), ...style }),
      (edge.way === "to" || edge.way === "both") && arrow([bx - DOT * dx, by - DOT * dy], [dx, dy], look),
      (edge.way === "from" || edge.way === "both") && arrow([ax + SELF * dx, ay + SELF * dy], [-dx, -dy], look),
    ];
  });
}

export function legend(kinds) {
  if (!kinds.size) return null;
  const weighted = [...kinds.values()].some(({ top }) => top > 0);
  const directed = [...kinds.values()].some((facts) => facts.directed);
  const notes = [directed && "an arrow is the direction", weighted && "the wider, the heavier"].filter(Boolean);
  return el(
    "div",
    { class: "legend small" },
    el(
      "ul",
      { class: "row", "aria-label": "Kinds of edges" },
      [...kinds.entries()].map(([kind, { look, count }]) =>
        el(
          "li",
          { class: "name" },
          svg(
            "svg",
            { viewBox: "0 0 24 8", "aria-hidden": "true" },
            svg("line", { x1: 0, y1: 4, x2: 24, y2: 4, class: `edge k${look}`, "stroke-width": 2 }),
          ),
          ` ${kind} `,
          el("span", { class: "soft" }, number(count)),
        ),
      ),
    ),
    notes.length > 0 && el("p", { class: "soft" }, notes.join("; ")),
  );
}

const ARROWS = { to: "to it", from: "from it", both: "both ways" };
const one = ({ kind, way, weight }) =>
  [kind, way && ` ${ARROWS[way]}`, weight !== null && `, weight ${weight.toPrecision(2)}`].filter(Boolean).join("");

// For the line below the drawing, and for who cannot see it.
export const said = (edges) => (edges?.length ? ` · ${edges.map(one).join("; ")}` : "");

// Why a class claims the node: by which kinds of edges it is linked to members of that class.
export function linkedMembers(name, near, classNow) {
  if (name === null) return null;
  const counts = new Map();
  for (const { edges } of near.filter((n) => classNow(n.node) === name))
    for (const { kind, way } of edges ?? []) {
      const key = `${kind}${way === null ? "" : way === "from" ? " ←" : way === "to" ? " →" : " ↔"}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
  if (!counts.size) return null;
  const parts = [...counts.entries()].sort((a, b) => b[1] - a[1]).map(([key, count]) => `${key} ${number(count)}`);
  return el("p", { class: "small soft edges-why" }, `edges with others of ${name}: `, parts.join(", "));
}
