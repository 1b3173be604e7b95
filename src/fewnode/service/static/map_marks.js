// What is drawn over the dots: classes with their examples, the node looked at with its edges, and the lasso.

import { shape } from "./dom.js";
import { slot } from "./memory.js";
import { state } from "./state.js";

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
  for (const { position } of state.node.neighbours)
    if (position) {
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
