// The map's nodes: where each is, what the data calls it, and which class claims it; names come as they are asked for.

import * as api from "./api.js";
import { slot } from "./memory.js";
import { judging, state } from "./state.js";

const HUES = 12; // muted colours, for classes of the data
const COLOURS = 6;
const SHAPES = 6;
const KEPT = 4000; // names
export const GREY = 0;
export const STRONG = 1 + HUES; // where the colours of the page's own classes begin

export const map = {
  n: 0,
  x: new Float32Array(),
  y: new Float32Array(),
  known: new Uint8Array(), // 255: no label
  classNames: [],
  claimed: null, // 0: none, 1 + i: the i-th of `classes`
  classes: [],
};
const names = new Map();

// A line of JSON, then numbers.
function parts(buffer) {
  const bytes = new Uint8Array(buffer);
  const end = bytes.indexOf(10);
  return [JSON.parse(new TextDecoder().decode(bytes.subarray(0, end))), buffer.slice(end + 1)];
}

export async function loadMap() {
  const [header, body] = parts(await api.map());
  const n = header.nodes;
  const places = (axis) => Float32Array.from(new Uint16Array(body, 2 * n * axis, n), (value) => value / 65535);
  names.clear();
  Object.assign(map, {
    n,
    x: places(0),
    y: places(1),
    known: new Uint8Array(body, 4 * n, n),
    classNames: header.class_names,
    claimed: null,
    classes: [],
  });
}

export async function loadClaims() {
  if (!state.classes.length) return Object.assign(map, { claimed: null, classes: [] });
  const [header, body] = parts(await api.mapClaims(judging()));
  const claimed = new Uint8Array(body);
  if (claimed.length !== map.n) await loadMap(); // nodes were added meanwhile
  Object.assign(map, { claimed, classes: header.classes });
}

export const nameOf = (row) => names.get(row) ?? null;

export async function fetchNames(rows) {
  const missing = rows.filter((row) => !names.has(row));
  if (missing.length) {
    if (names.size + missing.length > KEPT) names.clear();
    const found = (await api.namesOf(missing)).names;
    missing.forEach((row, i) => names.set(row, found[i]));
  }
  return rows.map((row) => names.get(row));
}

export const claimOf = (row) => (map.claimed?.[row] ? map.classes[map.claimed[row] - 1] : null);
export const knownOf = (row) => (map.known[row] === 255 ? null : map.classNames[map.known[row]]);

// The look of each dot, and the order to draw them in: grey ones first, claimed ones on top.
export function looks(withKnown) {
  const { n, claimed, known } = map;
  const colour = new Uint8Array(n);
  const shape = new Uint8Array(n);
  const slots = map.classes.map(slot);
  const layers = [0, 0, 0];
  const layer = (i) => (claimed?.[i] ? 2 : withKnown && known[i] !== 255 ? 1 : 0);
  for (let i = 0; i < n; i++) {
    const which = layer(i);
    layers[which]++;
    if (which === 0) continue;
    const s = which === 2 ? slots[claimed[i] - 1] : known[i];
    colour[i] = which === 2 ? STRONG + (s % COLOURS) : 1 + (s % HUES);
    if (which === 2) shape[i] = (s + Math.floor(s / COLOURS)) % SHAPES;
  }
  const order = new Uint32Array(n);
  const next = [0, layers[0], layers[0] + layers[1]];
  for (let i = 0; i < n; i++) order[next[layer(i)]++] = i;
  return { colour, shape, order };
}

// Where the larger classes of the data have their middle: [name, x, y], the largest first.
export function middles(most) {
  const of = new Map();
  for (let i = 0; i < map.n; i++)
    if (map.known[i] !== 255) (of.get(map.known[i]) ?? of.set(map.known[i], []).get(map.known[i])).push(i);
  const median = (rows, axis) => Float32Array.from(rows, (i) => axis[i]).sort()[rows.length >> 1];
  return [...of]
    .sort((a, b) => b[1].length - a[1].length)
    .slice(0, most)
    .map(([c, rows]) => [map.classNames[c], median(rows, map.x), median(rows, map.y)]);
}

// The dot nearest to a place of the screen: [row, pixels away]. `place`: how rows become pixels.
export function nearest([px, py], { sx, ox, sy, oy }, allowed = () => true) {
  let best = -1;
  let least = Infinity;
  for (let i = 0; i < map.n; i++) {
    const dx = map.x[i] * sx + ox - px;
    const dy = map.y[i] * sy + oy - py;
    const d = dx * dx + dy * dy;
    if (d < least && allowed(dx, dy)) [best, least] = [i, d];
  }
  return [best, Math.sqrt(least)];
}

// Rows whose dots lie inside a polygon of the screen.
export function inside(polygon, { sx, ox, sy, oy }) {
  const found = [];
  for (let i = 0; i < map.n; i++) {
    const x = map.x[i] * sx + ox;
    const y = map.y[i] * sy + oy;
    let within = false;
    for (let a = 0, b = polygon.length - 1; a < polygon.length; b = a++) {
      const [ax, ay] = polygon[a];
      const [bx, by] = polygon[b];
      if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) within = !within;
    }
    if (within) found.push(i);
  }
  return found;
}
