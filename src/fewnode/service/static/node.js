// The node that is looked at: what it is, what the classes say of it and why, what it could be, and its neighbours.

import { useLayoutEffect } from "./vendored/preact.js";
import { Content, Naming, Reasons, bar, button, colour, html, mark, number, percent, plural, shape } from "./parts.js";
import * as desk from "./desk.js";
import { attempt, classNamed, classNow, classOf, names, paint, saidOf, slot, state } from "./desk.js";
import { find } from "./find.js";

const LEARNT = { train: "which the model was trained on", valid: "which stopped its training", test: "which it has never seen" };

function shut() {
  desk.close();
  document.getElementById("search").focus({ preventScroll: true });
}

export default function Node() {
  const { node, class: known, neighbours_total: total } = state.node;
  useLayoutEffect(() => state.titled && document.getElementById("node-title").focus(), [node]);
  const part = Object.entries(state.model.classes).find(([, of]) => of.includes(known))?.[0];
  const learnt = state.model.trained && part ? `, ${LEARNT[part]}` : "";
  const near = () => (desk.show("find"), find({ near: node }));
  return html`<article id="node" aria-labelledby="node-title">
    <header class="row"><h2 id="node-title" tabindex="-1" class="name">${node}</h2>
      ${button("×", shut, { class: "quiet", "aria-label": `Stop looking at ${node}` })}</header>
    <p class="soft small">${known === null ? "class unknown" : `in the data: ${known}${learnt}`} · ${plural(total, "neighbour")} · ${
      button("nearest to it", near, { class: "link" })}</p>
    <${Content} about=${state.node} />
    <${Answers} node=${node} key=${node} />
    <${Verdicts} node=${node} />
    <${Neighbours} about=${state.node} key=${`near ${node}`} /></article>`;
}

let naming = null; // the node that is about to start a class of its own
function Answers({ node }) {
  const targets = [...names()].sort((a, b) => (b === state.active) - (a === state.active));
  const say = (name, verdict) => () => attempt(() => desk.decide(node, name, saidOf(node, name) === verdict ? null : verdict));
  const one = (text, name, verdict, label) =>
    button(text, say(name, verdict), { class: "plain", "aria-label": label, "aria-pressed": String(saidOf(node, name) === verdict) });
  const start = (name) => ((naming = null), attempt(() => desk.put(name, [node], null)));
  const startWith = () => ((naming = node), paint(), setTimeout(() => document.getElementById("start-name").focus()));
  return html`<div class="actions">
    ${targets.slice(0, 6).map((name) => html`<p class="row" role="group" aria-label="Is ${node} in ${name}?" key=${name}>
      <span class="name grow">${mark(name)}${name}</span>
      ${one("Yes", name, "yes", `Yes: add ${node} to ${name}`)}
      ${classNamed(name) && one("No", name, "no", `No: ${node} is not in ${name}`)}</p>`)}
    ${targets.length === 0 || naming === node
      ? html`<${Naming} id="start-name" label="Start a class with it" solid=${!names().length} refuse=${desk.refusal} submit=${start} />`
      : button("Start another class with it", startWith, { class: "link small", "aria-label": `Start a class with ${node}` })}</div>`;
}

// What each class says of it, and why the active one does.
function Verdicts({ node }) {
  const result = state.judged?.of.get(node);
  if (!result) return null;
  const { classes, closed } = state.judged;
  const row = (name, p) => html`<li><span class="name">${name !== null && mark(name)}${name ?? "none of these"}</span>${bar(p, name)}
    <span class="num">${percent(p)}</span></li>`;
  const order = [...result.probabilities.entries()].sort((a, b) => b[1] - a[1]).slice(0, 5);
  return html`<div class="why">
    <h3>${result.class === null ? "None of the classes claims it" : `Claimed by ${result.class}`}</h3>
    <ul class="bars">${order.map(([i, p]) => row(classes[i], p))}${!closed && result.member !== null && row(null, 1 - result.member)}</ul>
    ${state.model.explains && classNamed(state.active) && html`<h3>Why ${state.active}</h3><${Reasons} why=${state.why} />`}
    <${LinkedMembers} name=${result.class} /></div>`;
}

// By which kinds of edges it is linked to members of the class that claims it.
function LinkedMembers({ name }) {
  const counts = new Map();
  const arrows = { from: " ←", to: " →", both: " ↔" };
  for (const { edges } of state.node.neighbours.filter((n) => name !== null && classNow(n.node) === name))
    for (const { kind, way } of edges) counts.set(kind + (arrows[way] ?? ""), (counts.get(kind + (arrows[way] ?? "")) ?? 0) + 1);
  if (!counts.size) return null;
  const parts = [...counts].sort((a, b) => b[1] - a[1]).map(([key, count]) => `${key} ${number(count)}`);
  return html`<p class="small soft edges-why">edges with others of ${name}: ${parts.join(", ")}</p>`;
}

// --- its neighbours as a small graph: rare ones, which say more than hubs, come first ---

const [WIDTH, HEIGHT, LOOKS, GAP] = [300, 200, 6, 4];

// Neighbours that know each other attract, all repel: settled from a circle, the same every time.
function layout(count, links) {
  const place = Array.from({ length: count }, (_, i) => [Math.cos((2 * Math.PI * i) / count), Math.sin((2 * Math.PI * i) / count)]);
  for (let step = 0; step < 150; step++) {
    const force = place.map(([x, y]) => {
      const r = Math.hypot(x, y) || 1e-6;
      return [(x / r) * (1 - r) * 0.6, (y / r) * (1 - r) * 0.6];
    });
    const pull = (i, j, strength) => {
      const [dx, dy] = [place[j][0] - place[i][0], place[j][1] - place[i][1]];
      const f = strength(dx * dx + dy * dy + 1e-3);
      force[i] = [force[i][0] + f * dx, force[i][1] + f * dy];
      force[j] = [force[j][0] - f * dx, force[j][1] - f * dy];
    };
    for (let i = 0; i < count; i++) for (let j = i + 1; j < count; j++) pull(i, j, (d2) => -0.02 / d2);
    for (const [i, j] of links) pull(i, j, (d2) => 0.25 * (Math.sqrt(d2) - 0.35));
    const heat = 0.25 * (1 - step / 150);
    place.forEach((p, i) => [0, 1].forEach((axis) => (p[axis] += Math.max(-0.1, Math.min(0.1, force[i][axis] * heat)))));
  }
  const reach = [0, 1].map((axis) => Math.max(0.5, ...place.map((p) => Math.abs(p[axis]))));
  return place.map(([x, y]) => [WIDTH / 2 + (x / reach[0]) * (WIDTH / 2 - 16), HEIGHT / 2 + (y / reach[1]) * (HEIGHT / 2 - 16)]);
}

// kind -> its look, the heaviest weight, and whether it has a direction; the most frequent kind first.
function kindsOf(near) {
  const found = new Map();
  for (const { kind, weight, way } of near.flatMap((n) => n.edges)) {
    const { count = 0, top = 0, directed = false } = found.get(kind) ?? {};
    found.set(kind, { count: count + 1, top: Math.max(top, weight ?? 0), directed: directed || way !== null });
  }
  const order = [...found].sort((a, b) => b[1].count - a[1].count || (a[0] < b[0] ? -1 : 1));
  return new Map(order.map(([kind, facts], i) => [kind, { ...facts, look: i % LOOKS }]));
}

const ARROWS = { to: "to it", from: "from it", both: "both ways" };
const edgeSaid = ({ kind, way, weight }) =>
  [kind, way && ` ${ARROWS[way]}`, weight !== null && `, weight ${weight.toPrecision(2)}`].filter(Boolean).join("");

function arrow([x, y], [dx, dy], look) {
  const points = [[x, y], [x - 6 * dx - 2.6 * dy, y - 6 * dy + 2.6 * dx], [x - 6 * dx + 2.6 * dy, y - 6 * dy - 2.6 * dx]];
  return html`<polygon points=${points.map((p) => p.map((v) => v.toFixed(1)).join()).join(" ")} class="k${look}" />`;
}

// The edges from the node in the middle to a neighbour, side by side: a colour and a dash a kind, width by weight.
function edgeLines([x1, y1], [x2, y2], edges, kinds) {
  const length = Math.hypot(x2 - x1, y2 - y1) || 1;
  const [dx, dy] = [(x2 - x1) / length, (y2 - y1) / length];
  return edges.map(({ kind, weight, way }, i) => {
    const aside = GAP * (i - (edges.length - 1) / 2);
    const { look, top } = kinds.get(kind);
    const [ax, ay, bx, by] = [x1 - dy * aside, y1 + dx * aside, x2 - dy * aside, y2 + dx * aside];
    const width = weight === null || !top ? 1.4 : 0.8 + 2.6 * Math.sqrt(weight / top);
    return html`<line x1=${ax} y1=${ay} x2=${bx} y2=${by} stroke-width=${width.toFixed(1)} class="edge k${look}" />
      ${(way === "to" || way === "both") && arrow([bx - 8 * dx, by - 8 * dy], [dx, dy], look)}
      ${(way === "from" || way === "both") && arrow([ax + 9 * dx, ay + 9 * dy], [-dx, -dy], look)}`;
  });
}

let pointed = null; // the neighbour that the line below speaks of
function Neighbours({ about: { node, neighbours: near, links, neighbours_total: total } }) {
  if (!near.length) return html`<p class="soft small">It has no neighbours: only its words can tell what it is.</p>`;
  const [at, kinds, middle] = [layout(near.length, links), kindsOf(near), [WIDTH / 2, HEIGHT / 2]];
  const tell = (said) => () => ((pointed = said), paint());
  const dots = near.map((n, i) => {
    const [name, own] = [classNow(n.node), classOf(n.node) !== null];
    const claim = name === null ? "" : own ? `, labelled ${name}` : `, claimed by ${name}`;
    const said = `${n.node}${claim}${n.class ? `, in the data: ${n.class}` : ""}${n.edges.length ? ` · ${n.edges.map(edgeSaid).join("; ")}` : ""}`;
    return html`<g role="button" tabindex=${i ? "-1" : "0"} aria-label="Look at ${said}" key=${n.node}
      transform="translate(${at[i][0].toFixed(1)} ${at[i][1].toFixed(1)})" onclick=${desk.lookAt(n.node)}
      onfocus=${tell(said)} onmouseenter=${tell(said)} onmouseleave=${tell(null)} onblur=${tell(null)}>
      <circle r="12" class="target" /><path d=${shape(slot(name))} class="dot ${colour(slot(name))} ${own ? "own" : ""}"
        transform="scale(${own ? 7 : 5})" /></g>`;
  });
  const line = ([x1, y1], [x2, y2], weak) => html`<line x1=${x1} y1=${y1} x2=${x2} y2=${y2} class=${weak ? "weak" : ""} />`;
  const many = total > near.length ? `${number(near.length)} of ${number(total)} neighbours, those with the fewest edges` : plural(total, "neighbour");
  return html`<figure class="neighbours">
    <svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="group" aria-label="Neighbours of ${node}; arrow keys go round, Enter looks" onkeydown=${walk}>
      ${links.map(([i, j]) => line(at[i], at[j], true))}
      ${at.map((p, i) => (near[i].edges.length ? edgeLines(middle, p, near[i].edges, kinds) : line(middle, p, false)))}
      <circle cx=${middle[0]} cy=${middle[1]} r="8" class="self" />${dots}</svg>
    <${Legend} kinds=${kinds} /><figcaption class="soft small" aria-live="polite">${pointed ?? many}</figcaption></figure>`;
}

function walk(event) {
  const dots = [...event.currentTarget.querySelectorAll("[role=button]")];
  const here = dots.indexOf(document.activeElement);
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (here < 0) return;
  if (event.key === "Enter" || event.key === " ") dots[here].dispatchEvent(new Event("click"));
  else if (step) dots[(here + step + dots.length) % dots.length].focus();
  else return;
  event.preventDefault();
}

function Legend({ kinds }) {
  if (!kinds.size) return null;
  const facts = [...kinds.values()];
  const notes = [facts.some((f) => f.directed) && "an arrow is the direction", facts.some((f) => f.top > 0) && "the wider, the heavier"];
  return html`<div class="legend small"><ul class="row" aria-label="Kinds of edges">${[...kinds].map(([kind, { look, count }]) =>
    html`<li class="name"><svg viewBox="0 0 24 8" aria-hidden="true"><line x1="0" y1="4" x2="24" y2="4" class="edge k${look}" stroke-width="2" /></svg>
      ${` ${kind} `}<span class="soft">${number(count)}</span></li>`)}</ul>
    ${notes.some(Boolean) && html`<p class="soft">${notes.filter(Boolean).join("; ")}</p>`}</div>`;
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && state.node && !event.defaultPrevented) shut();
});
