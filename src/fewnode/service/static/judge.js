// The question worth asking next, what its node is beside one that is in the class, and one key a verdict.

import { Content, Reasons, button, html, link, list, mark, percent, plural } from "./parts.js";
import * as desk from "./desk.js";
import { attempt, claimsOf, classNamed, names, shown, state } from "./desk.js";
import { Trust } from "./trust.js";

let keys = true; // who speaks to the computer, or whose hand slips, can turn single keys off
const ORDERS = { doubt: "what teaches most", likeliest: "likeliest first" };

export default function Judge() {
  if (!names().length) return html`<p class="soft">There is no class yet. Start one, and the questions come by themselves.</p>`;
  if (!classNamed(state.active)) return html`<p>${state.active} waits for its first node.</p>`;
  if (!desk.answered())
    return html`<p>${state.model.method_name} cannot tell whether a node is in none of the classes, so it cannot say which nodes
      are like these. Start a second class to compare with.</p>`;
  if (!state.model.suggests)
    return html`<p>${state.model.method_name} has no embedding: it cannot say which node is worth asking about. Work on the list.</p>`;
  const next = state.questions?.[0];
  return html`${next ? html`<${Question} next=${next} key=${next.node} />` : html`<${Waiting} />`}
    ${next && html`<${Evidence} next=${next} key=${`about ${next.node}`} />`}
    <div class="row small soft below">
      <label for="order">Ask about</label>
      <select id="order" value=${state.order} onchange=${(event) => attempt(() => desk.reorder(event.target.value))}>
        ${Object.entries(ORDERS).map(([order, text]) => html`<option value=${order}>${text}</option>`)}</select>
      <span class="check keys"><input type="checkbox" id="keys" checked=${keys} onchange=${(event) => (keys = event.target.checked)} />
        <label for="keys">Keys: y n s, 1–4, u r, /</label></span></div>
    <${Trust} />`;
}

const Waiting = () => html`<div class="question">
  <p class="big">${state.questions ? "There is nothing left worth asking." : "Looking for the node worth asking about…"}</p>
  ${state.questions && html`<p class="soft">Work on the list, lower the threshold, or start another class.</p>`}</div>`;

const verdict = (text, letter, next, said) =>
  button(text, () => attempt(() => desk.decide(next.node, next.class, said, next)), {
    class: "solid", "aria-keyshortcuts": letter, "data-letter": letter,
    "aria-label": `${text}, ${next.node} is ${said === "yes" ? "" : "not "}in ${next.class}` });

function Question({ next }) {
  const others = state.classes.map((c) => c.name).filter((name) => name !== next.class);
  const claims = claimsOf(next.class);
  const facts = [`${percent(next.probability)} likely`, next.known && `in the data: ${next.known}`, claims !== null && `${plural(claims, "node")} claimed`];
  return html`<div class="question">
    <h2 class="big" id="question">Is ${link(next.node, { class: "link name" })} one of <span class="name">${mark(next.class)}${next.class}?</span></h2>
    <p class="row verdicts">${verdict("Yes", "y", next, "yes")}${verdict("No", "n", next, "no")}
      ${button("Skip", () => attempt(() => desk.skip(next)), { class: "plain", "data-letter": "s" })}
      ${others.slice(0, 4).map((name, i) => button([mark(name), ` ${name}`], () => attempt(() => desk.decide(next.node, name, "yes")), {
        class: "plain", "data-letter": String(i + 1), "aria-label": `No, ${next.node} is in ${name}` }))}</p>
    <p class="soft small">${facts.filter(Boolean).join(" · ")}</p>
    <p class="small ${next.purpose === "check" ? "check" : "soft"}">${next.purpose === "check"
      ? "A check: drawn by chance, to tell how many there are" : next.why}</p></div>`;
}

// The node that is asked about beside the one of its class that it is most like; what both have is marked.
function Evidence({ next }) {
  const { nodes = {}, why = null } = state.evidence ?? {};
  const about = nodes[next.node];
  const reasons = why?.node === next.node ? why : null;
  const other = nodes[reasons?.nearest_example?.node];
  const shared = other && about ? common(about, other) : new Set();
  return html`<div class="evidence">
    <div><h3>What it is</h3>${about ? html`<${Content} about=${about} shared=${shared} />${around(about)}` : html`<p class="soft small">…</p>`}</div>
    ${other && html`<div><h3>Beside ${link(other.node)}, which is in ${next.class}</h3><${Content} about=${other} shared=${shared} />${around(other)}</div>`}
    <div class="wide"><h3>Why it may be one</h3><${Reasons} why=${reasons} /></div></div>`;
}

const tokens = ({ text, words }) =>
  new Set(text ? text.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter((word) => word.length > 3) : words.map((w) => w.word));
function common(one, other) {
  const there = tokens(other);
  return new Set([...tokens(one)].filter((word) => there.has(word)));
}

function around({ neighbours, neighbours_total: total }) {
  if (!total) return html`<p class="soft small">It has no neighbours: only its words can tell what it is.</p>`;
  return html`<p class="small"><span class="soft">${plural(total, "neighbour")}: </span>
    ${list(neighbours.slice(0, 6).map(({ node }) => link(node)))}${total > 6 && " …"}</p>`;
}

// --- one key a verdict ---

const typing = (target) => target.closest?.("input:not([type=checkbox]), textarea, select, [role=application]");

document.addEventListener("keydown", (event) => {
  if (!keys || event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || !state.model) return;
  const next = shown() === "judge" || shown() === "find" ? state.questions?.[0] : null;
  const looked = state.node?.node;
  const said = { y: "yes", n: "no" }[event.key];
  const other = state.classes.filter((c) => c.name !== next?.class)[Number(event.key) - 1]?.name;
  if (event.key === "/") document.getElementById("search").focus();
  else if (event.key === "u" && state.journal?.undo) attempt(() => desk.step("undo"));
  else if (event.key === "r" && state.journal?.redo) attempt(() => desk.step("redo"));
  else if (said && next) attempt(() => desk.decide(next.node, next.class, said, next));
  else if (event.key === "s" && next) attempt(() => desk.skip(next));
  else if (other && next) attempt(() => desk.decide(next.node, other, "yes"));
  else if (said && shown() !== "list" && looked && classNamed(state.active)) attempt(() => desk.decide(looked, state.active, said));
  else return;
  event.preventDefault();
});
