// What the map shows: its nodes, the marks over them, and what a hand does there.

import { judging, slot, state } from "./desk.js";
import { shape } from "./parts.js";
import * as service from "./service.js";

const HUES = 12; // muted colours, for classes of the data
const COLOURS = 6;
const SHAPES = 6;
const KEPT = 4000; // names
export const GREY = 0;
export const STRONG = 1 + HUES; // where the colours of the page's own classes begin

// `known`: 255 is no label; `claimed`: 0 is none, 1 + i the i-th of `classes`.
export const map = { n: 0, x: [], y: [], known: [], classNames: [], claimed: null, classes: [] };
const names = new Map();

// A line of JSON, then numbers.
function parts(buffer) {
  const bytes = new Uint8Array(buffer);
  const end = bytes.indexOf(10);
  return [JSON.parse(new TextDecoder().decode(bytes.subarray(0, end))), buffer.slice(end + 1)];
}

export async function loadMap() {
  const [header, body] = parts(await service.bytes("/api/map.bin"));
  const n = header.nodes;
  const places = (axis) => Float32Array.from(new Uint16Array(body, 2 * n * axis, n), (value) => value / 65535);
  names.clear();
  const known = new Uint8Array(body, 4 * n, n);
  Object.assign(map, { n, x: places(0), y: places(1), known, classNames: header.class_names, claimed: null, classes: [] });
}

export async function loadClaims() {
  if (!state.classes.length) return Object.assign(map, { claimed: null, classes: [] });
  const [header, body] = parts(await service.bytes("/api/map/claims.bin", judging()));
  const claimed = new Uint8Array(body);
  if (claimed.length !== map.n) await loadMap(); // nodes were added meanwhile
  Object.assign(map, { claimed, classes: header.classes });
}

export const nameOf = (row) => names.get(row) ?? null;

export async function fetchNames(rows) {
  const missing = rows.filter((row) => !names.has(row));
  if (missing.length) {
    if (names.size + missing.length > KEPT) names.clear();
    const found = (await service.namesOf(missing)).names;
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
  const largest = [...of].sort((a, b) => b[1].length - a[1].length).slice(0, most);
  return largest.map(([c, rows]) => [map.classNames[c], median(rows, map.x), median(rows, map.y)]);
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

// --- marks: classes with their examples, the node looked at with its edges, and the lasso ---

function outlined(s, x, y, radius) {
  const placed = new Path2D();
  placed.addPath(new Path2D(shape(s)), new DOMMatrix().translate(x, y).scale(radius));
  return placed;
}

const between = ({ from, to }, t) => [from[0] + (to[0] - from[0]) * t, from[1] + (to[1] - from[1]) * t];

// `look`: {ink, paint(slot), screen([x, y]), size, font}; `moving`: class -> {from, to}; t: how far they have come.
export function drawClasses(context, look, moving, t) {
  const placed = state.classes.filter((one) => one.position && moving.has(one.name));
  for (const one of placed) examples(context, look, one, between(moving.get(one.name), t));
  const taken = [];
  const spots = placed.map((one) => [one, look.screen(between(moving.get(one.name), t))]);
  for (const [one, [x, y]] of spots) {
    mark(context, look, slot(one.name), x, y);
    taken.push({ left: x - 12, width: 24, top: y });
  }
  for (const [one, [x, y]] of spots) label(context, look, one.name, x, y, taken);
}

// An example is tied to its prototype, by a line as strong as its β.
function examples(context, look, one, prototype) {
  const s = slot(one.name);
  const [px, py] = look.screen(prototype);
  for (const { beta, position } of one.support) {
    if (!position) continue;
    const [x, y] = look.screen(position);
    context.strokeStyle = look.paint(s);
    context.globalAlpha = 0.6;
    context.lineWidth = 0.75 + 3 * (beta ?? 0);
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(px, py);
    context.stroke();
    context.globalAlpha = 1;
    const outline = outlined(s, x, y, 4.5);
    context.fillStyle = look.ink.paper;
    context.fill(outline);
    context.lineWidth = 2;
    context.stroke(outline);
  }
}

function mark(context, look, s, x, y) {
  const outline = outlined(s, x, y, 9);
  context.lineWidth = 5;
  context.strokeStyle = look.ink.paper;
  context.stroke(outline);
  context.fillStyle = look.paint(s);
  context.fill(outline);
}

// Beside its mark, or where no other mark or label is.
function label(context, look, name, x, y, taken) {
  const text = [...name].length > 24 ? `${[...name].slice(0, 23).join("")}…` : name;
  context.font = `600 15px ${look.font}`;
  const width = context.measureText(text).width;
  const left = x + 15 + width > look.size[0] ? x - 15 - width : x + 15;
  const top = [0, -20, 20, -38, 38, -56, 56].map((by) => y + by).find((at) => isFree(taken, left, at, width, 18)) ?? y;
  taken.push({ left, top, width });
  write(context, look, text, left, top, look.ink.ink);
}

const isFree = (taken, left, top, width, high) =>
  !taken.some((l) => Math.abs(l.top - top) < high && left < l.left + l.width && l.left < left + width);

function write(context, look, text, left, top, colour) {
  context.textBaseline = "middle";
  context.lineJoin = "round";
  context.lineWidth = 4;
  context.strokeStyle = look.ink.paper;
  context.strokeText(text, left, top);
  context.fillStyle = colour;
  context.fillText(text, left, top);
}

// The classes of the data by name, where there is room.
export function drawKnown(context, look, middles) {
  const taken = [];
  context.font = `13px ${look.font}`;
  for (const [name, mx, my] of middles) {
    const [x, y] = look.screen([mx, my]);
    const width = context.measureText(name).width;
    if (x < 0 || y < 0 || x > look.size[0] || y > look.size[1] || !isFree(taken, x - width / 2, y, width, 16)) continue;
    taken.push({ left: x - width / 2, top: y, width });
    write(context, look, name, x - width / 2, y, look.ink.soft);
  }
}

export function drawLooked(context, look) {
  if (!state.node?.position) return;
  const [x, y] = look.screen(state.node.position);
  context.strokeStyle = look.ink.ink;
  context.lineWidth = 1;
  context.globalAlpha = 0.55;
  context.beginPath();
  for (const { position } of state.node.neighbours.filter((near) => near.position)) {
    context.moveTo(x, y);
    context.lineTo(...look.screen(position));
  }
  context.stroke();
  context.globalAlpha = 1;
  ring(context, x, y, 10, look.ink.ink);
}

export function ring(context, x, y, radius, colour) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.lineWidth = 2;
  context.strokeStyle = colour;
  context.stroke();
}

export function drawLasso(context, look, polygon) {
  if (polygon.length < 2) return;
  context.beginPath();
  polygon.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
  context.closePath();
  context.lineWidth = 1.5;
  context.setLineDash([5, 4]);
  context.strokeStyle = look.ink.focus;
  context.stroke();
  context.setLineDash([]);
  context.globalAlpha = 0.08;
  context.fillStyle = look.ink.focus;
  context.fill();
  context.globalAlpha = 1;
}

// --- gestures: one pointer drags, draws a lasso or chooses a dot; two spread or pinch ---

const STILL = 4; // pixels that a pointer may move and still mean the dot that it is at

const away = ([ax, ay], [bx, by]) => Math.hypot(ax - bx, ay - by);
const middle = ([ax, ay], [bx, by]) => [(ax + bx) / 2, (ay + by) / 2];

// `does`: what each gesture leads to. Places are in pixels of the canvas.
export function gestures(canvas, does) {
  const down = new Map(); // where the pointers are that touch the map
  let drag = null; // {at, view, moved, drawn: the lasso, if it is one}
  let pinch = null; // {at: where both were, view}

  const spot = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const begin = (at, moved, drawn = null) => (drag = { at, view: { ...does.view() }, moved, drawn });

  canvas.addEventListener("pointerdown", (event) => {
    const here = spot(event);
    down.set(event.pointerId, here);
    canvas.setPointerCapture(event.pointerId);
    if (down.size === 1) return begin(here, false, does.lassoes() || event.shiftKey ? [here] : null);
    if (drag?.drawn) does.draw([]);
    drag = null;
    pinch = down.size === 2 ? { at: [...down.values()], view: { ...does.view() } } : null;
  });

  canvas.addEventListener("pointermove", (event) => {
    const here = spot(event);
    if (down.has(event.pointerId)) down.set(event.pointerId, here);
    if (pinch) {
      const now = [...down.values()];
      const factor = away(...now) / Math.max(1, away(...pinch.at));
      return does.carry(pinch.view, middle(...pinch.at), middle(...now), factor);
    }
    if (!drag || !event.buttons) return does.hover(here);
    drag.moved ||= away(here, drag.at) > STILL;
    if (!drag.drawn) return does.carry(drag.view, drag.at, here);
    drag.drawn.push(here);
    does.draw(drag.drawn);
  });

  canvas.addEventListener("pointerup", (event) => {
    const done = drag;
    lift(event);
    if (!done) return;
    if (done.drawn && done.moved && done.drawn.length > 2) return does.select(done.drawn);
    if (!done.moved) does.click(spot(event));
  });
  canvas.addEventListener("pointercancel", (event) => lift(event));

  // The finger that stays after a pinch goes on dragging; lifted, it chooses nothing.
  function lift(event) {
    down.delete(event.pointerId);
    if (drag?.drawn) does.draw([]);
    drag = null;
    pinch = null;
    if (down.size === 1) begin([...down.values()][0], true);
  }

  canvas.addEventListener("pointerleave", () => drag || does.leave());
  const wheel = (event) => (event.preventDefault(), does.wheel(event.deltaY < 0, spot(event)));
  canvas.addEventListener("wheel", wheel, { passive: false });
}

// --- dots by WebGL: all nodes in one call, so that a map of 60,000 follows the hand ---

const VERTEX = `#version 300 es
in vec2 place; in vec2 look;
uniform vec4 fit; uniform vec2 size; uniform float radius; uniform vec4 palette[19];
out vec4 paint; flat out int kind;
void main() {
  vec2 at = place * fit.xz + fit.yw;
  gl_Position = vec4(at.x / size.x * 2. - 1., 1. - at.y / size.y * 2., 0., 1.);
  int c = int(look.x);
  gl_PointSize = radius * (c == 0 ? 1.7 : c < 13 ? 2. : 2.8);
  paint = palette[c]; kind = int(look.y);
}`;
const FRAGMENT = `#version 300 es
precision mediump float;
in vec4 paint; flat in int kind; out vec4 drawn;
void main() {
  vec2 p = (gl_PointCoord - .5) * 2.; vec2 q = abs(p); float d;
  if (kind == 1) d = max(q.x, q.y) - .8;
  else if (kind == 2) d = max(q.x * .87 - p.y * .5 - .45, p.y - .75);
  else if (kind == 3) d = (q.x + q.y) * .75 - .75;
  else if (kind == 4) d = max(min(q.x, q.y) - .35, max(q.x, q.y) - .95);
  else if (kind == 5) d = max(q.x * .87 + q.y * .5, q.y) - .85;
  else d = length(p) - .95;
  float a = clamp(.5 - d / max(fwidth(d), .001), 0., 1.);
  if (a < .02) discard;
  drawn = vec4(paint.rgb, 1.) * paint.a * a;
}`;

function compiled(gl) {
  const program = gl.createProgram();
  for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  return gl.getProgramParameter(program, gl.LINK_STATUS) ? program : null;
}

// Null where there is no WebGL 2.
export function glDots(canvas) {
  const gl = canvas.getContext("webgl2", { antialias: false });
  const program = gl && compiled(gl);
  if (!program) return null;
  const [points, looks, index] = [gl.createBuffer(), gl.createBuffer(), gl.createBuffer()];
  const at = (name) => gl.getUniformLocation(program, name);
  const uniforms = { fit: at("fit"), size: at("size"), radius: at("radius"), palette: at("palette") };
  let count = 0;
  gl.useProgram(program);
  gl.enable(gl.BLEND);
  gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);

  function attribute(buffer, name, type, data) {
    const place = gl.getAttribLocation(program, name);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
    gl.enableVertexAttribArray(place);
    gl.vertexAttribPointer(place, 2, type, false, 0, 0);
  }

  const pairs = (made, a, b) => {
    for (let i = 0; i < a.length; i++) [made[2 * i], made[2 * i + 1]] = [a[i], b[i]];
    return made;
  };

  return {
    points: (x, y) => attribute(points, "place", gl.FLOAT, pairs(new Float32Array(2 * x.length), x, y)),
    looks({ colour, shape, order }) {
      attribute(looks, "look", gl.UNSIGNED_BYTE, pairs(new Uint8Array(2 * colour.length), colour, shape));
      gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, index);
      gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, order, gl.STATIC_DRAW);
      count = order.length;
    },
    palette: (colours) => gl.uniform4fv(uniforms.palette, colours.flat()),
    draw({ sx, ox, sy, oy }, [width, height], scale, radius) {
      gl.viewport(0, 0, canvas.width, canvas.height);
      gl.clearColor(0, 0, 0, 0);
      gl.clear(gl.COLOR_BUFFER_BIT);
      gl.uniform4f(uniforms.fit, sx, ox, sy, oy);
      gl.uniform2f(uniforms.size, width, height);
      gl.uniform1f(uniforms.radius, radius * scale);
      if (count) gl.drawElements(gl.POINTS, count, gl.UNSIGNED_INT, 0);
    },
  };
}
