// Find: by name, by text, by an attribute, near a node or by a list; what was selected; and the classes.

import { Naming, bar, button, html, link, list, mark, number, plural, More } from "./parts.js";
import * as desk from "./desk.js";
import { attempt, claimsOf, classNamed, classOf, names, paint, say, state } from "./desk.js";
import * as service from "./service.js";

const PAGE = 20;
const PAUSE = 0.12; // seconds without a key
const MOST_BYTES = 1 << 20;
const byId = (id) => document.getElementById(id);

// --- the search ---

const found = { asked: null, nodes: [], total: 0, at: -1 };
let latest = 0;

const title = ({ search, attribute, value, near }) =>
  near ? `Nearest to ${near}` : attribute ? `${attribute}${value ? ` = ${value}` : ""}` : `“${search}”`;

async function ask(what, more = false) {
  const mine = ++latest;
  if (!what) return clear();
  const answer = await service.search({ ...what, offset: more ? found.nodes.length : 0, limit: PAGE });
  if (mine !== latest) return;
  const nodes = more ? [...found.nodes, ...answer.nodes] : answer.nodes;
  Object.assign(found, { asked: what, nodes, total: answer.total, at: more ? found.at : -1 });
  paint();
}

// Other ways to ask fill the same list.
export const find = (what) => attempt(() => ask(what));
// Nodes were added: what was not there may be there now.
export const again = () => found.asked && find(found.asked);

function clear() {
  latest++;
  Object.assign(found, { asked: null, nodes: [], total: 0, at: -1 });
  paint();
}

function told() {
  const { asked, total, nodes } = found;
  if (!asked) return "";
  if (!total) return asked.search ? "No node has that in its name or text." : `No node: ${title(asked)}.`;
  const first = total > nodes.length ? `; the first ${number(nodes.length)} are listed` : "";
  return `${asked.search ? "" : `${title(asked)}: `}${plural(total, "node")}${first}.`;
}

const typed = (text = byId("search").value.trim()) => (text ? { search: text, in: "all" } : null);
const more = () => found.nodes.length < found.total && attempt(() => ask(found.asked, true));
const choose = (i) => attempt(() => desk.look(found.nodes[i].node));
const point = (i) => {
  found.at = Math.min(i, found.nodes.length - 1);
  paint();
  setTimeout(() => byId(`found-${found.at}`)?.scrollIntoView({ block: "nearest" }));
};

async function keyed(event) {
  if (event.key === "ArrowDown") {
    event.preventDefault();
    if (!found.nodes.length) return attempt(() => ask(typed()));
    if (found.at === found.nodes.length - 1) await more();
    point(found.at + 1);
  } else if (event.key === "ArrowUp") {
    event.preventDefault();
    point(Math.max(found.at - 1, -1));
  } else if (event.key === "Enter") {
    event.preventDefault();
    clearTimeout(timer);
    if (found.asked?.search !== typed()?.search) await attempt(() => ask(typed())); // typed faster than it was asked
    if (found.nodes.length) choose(Math.max(found.at, 0));
  } else if (event.key === "Escape" && found.nodes.length) {
    event.preventDefault(); // the first Escape closes the list, the next empties the box
    clear();
  }
}

let timer = 0;
function input() {
  clearTimeout(timer);
  timer = setTimeout(() => attempt(() => ask(typed())), 1000 * PAUSE);
}

const scrolled = ({ target }) => target.scrollTop + target.clientHeight > target.scrollHeight - 20 && more();

function option({ node, class: known, degree, matched, words = [] }, i) {
  const text = words.length && matched !== "name" ? words.slice(0, 5).join(", ") : null;
  return html`<li role="option" id="found-${i}" key=${node} aria-selected=${String(i === found.at)} onclick=${() => choose(i)}>
    <span class="name">${classOf(node) !== null && mark(classOf(node))}${node}</span>
    <span class="soft small">${[text, known, plural(degree, "neighbour")].filter(Boolean).join(" · ")}</span></li>`;
}

function Search() {
  const { nodes, asked, at } = found;
  const take = () => select(title(asked), nodes.map(({ node }) => ({ node, class: null })));
  return html`<div class="search">
    <label for="search">A name, or words of the text</label>
    <input id="search" type="search" role="combobox" autocomplete="off" autocapitalize="none" spellcheck="false"
      aria-autocomplete="list" aria-expanded=${String(nodes.length > 0)} aria-controls="found" aria-describedby="search-note"
      aria-activedescendant=${at < 0 ? null : `found-${at}`} oninput=${input} onkeydown=${keyed} />
    <p id="search-note" class="soft small" role="status">${told()}</p>
    ${nodes.length > 0 && html`<p class="row small">${button(`Select these ${number(nodes.length)}`, take, { class: "link" })}
      ${button("Close the list", clear, { class: "link" })}</p>`}
    <ul id="found" role="listbox" aria-label="Nodes found" hidden=${!nodes.length} onscroll=${scrolled}>${nodes.map(option)}</ul>
  </div>`;
}

// --- other ways to begin ---

let attributes = [];
// A field that completes the names of attributes while they are typed.
export const Completed = (given) => html`<input autocomplete="off" spellcheck="false" list="attribute-names" ...${given}
  onfocus=${(event) => complete(event)} oninput=${(event) => (complete(event), given.oninput?.(event))} />`;

async function complete({ target }) {
  await attempt(async () => (attributes = (await service.attributes(target.value.trim())).attributes));
}

export const AttributeNames = () =>
  html`<datalist id="attribute-names">${attributes.map((a) => html`<option value=${a.name}>${number(a.nodes)}</option>`)}</datalist>`;

function ByAttribute() {
  const submit = (event) => {
    event.preventDefault();
    const [attribute, value] = ["attribute", "attribute-value"].map((id) => byId(id).value.trim());
    if (attribute) find({ attribute, value });
  };
  return html`<${More} title="By an attribute’s value"><form class="stack" onsubmit=${submit}>
    <label for="attribute">Attribute</label><${Completed} id="attribute" />
    <label for="attribute-value">Value</label>
    <span class="row grow"><input id="attribute-value" autocomplete="off" placeholder="any" />
      <button class="plain">Find</button></span></form></${More}>`;
}

let complaint = "";
function ByList() {
  const complain = (text) => ((complaint = text), paint());
  const read = () =>
    attempt(async () => {
      complain("");
      const text = byId("pasted").value;
      if (text.trim() === "") return complain("Paste a list first, or choose a file.");
      if (text.length > MOST_BYTES) return complain("The list is larger than 1 MB. Give it in parts.");
      const { nodes, unknown, repeated, said_no: no, unused_columns: unused } = await service.list(text);
      const places = unknown.slice(0, 5).map((u) => `line ${u.line}: ${u.text}`);
      const notes = [
        unknown.length && `${plural(unknown.length, "line")} named no node (${places.join("; ")}${unknown.length > 5 ? "; …" : ""}).`,
        repeated && `${plural(repeated, "repeated line")} left out.`,
        no && `${plural(no, "line")} whose answer is no left out.`,
        unused.length && `Columns that are not used: ${unused.join(", ")}.`,
      ].filter(Boolean);
      if (nodes.length === 0) return complain(notes.join(" ") || "No node of this network is in it.");
      const { compared } = state.model.limits;
      if (nodes.length > compared)
        notes.push(`As examples, a random sample of ${number(compared)} of them is compared with other nodes.`);
      select("The list", nodes, notes);
    });
  const fromFile = async ({ target }) => {
    if (!target.files.length) return;
    if (target.files[0].size > MOST_BYTES) return complain("The file is larger than 1 MB. Give it in parts.");
    byId("pasted").value = await target.files[0].text();
    read();
  };
  return html`<${More} title="By a list, pasted or from a file"><div class="stack">
    <label for="pasted">A node a line, or node,class</label>
    <textarea id="pasted" rows="3" spellcheck="false" placeholder="node\nor node,class" />
    <label for="pasted-file">or a CSV file</label>
    <input type="file" id="pasted-file" accept=".csv,.tsv,.txt,text/csv,text/plain" onchange=${fromFile} />
    ${button("Read the list", read, { class: "plain" })}<p class="small error" role="alert">${complaint}</p></div></${More}>`;
}

// --- what a search, a list or a lasso found: many nodes, one answer ---

const SHOWN = 12;
export function select(title, nodes, notes = []) {
  state.selection = { title, nodes, notes };
  say(`${plural(nodes.length, "node")} selected.`);
  setTimeout(() => byId("selection")?.scrollIntoView({ block: "nearest" }));
}
const forget = () => ((state.selection = null), paint());

function Selection() {
  if (!state.selection) return null;
  const { title, nodes, notes } = state.selection;
  const all = nodes.map((n) => n.node);
  const told = nodes.filter((n) => n.class !== null);
  const done = (action) => attempt(async () => (await action(), forget()));
  const every = (verdict) => () => done(() => desk.decideAll(all, state.active, verdict));
  return html`<section id="selection" aria-label="Selection">
    <header class="row"><h3 class="grow name">${plural(nodes.length, "node")} selected</h3>
      ${button("×", forget, { class: "quiet", "aria-label": "Forget the selection" })}</header>
    <p class="soft small name">${title}</p>
    ${notes.map((note) => html`<p class="small">${note}</p>`)}
    <p class="small picks">${list(nodes.slice(0, SHOWN).map((n) => [link(n.node), n.class !== null && ` (${n.class})`]))}
      ${nodes.length > SHOWN && ` and ${number(nodes.length - SHOWN)} more`}</p>
    ${told.length > 0 && html`<p>${button(`As the list says: ${plural(new Set(told.map((n) => n.class)).size, "class")}`,
      () => done(() => takeOver(told)), { class: "solid" })}</p>`}
    ${state.active !== null && html`<p class="row">
      ${button([mark(state.active), ` All are ${state.active}`], every("yes"), { class: "plain" })}
      ${classNamed(state.active) && button("None is", every("no"), { class: "plain", "aria-label": `None is ${state.active}` })}</p>`}
    <${Naming} id="selection-name" label="Start a class with them" refuse=${desk.refusal}
      submit=${(name) => done(() => desk.decideAll(all, name, "yes"))} /></section>`;
}

// The list names classes: each node goes to its own.
async function takeOver(told) {
  const classes = new Map();
  for (const { node, class: name } of told) classes.set(name, [...(classes.get(name) ?? []), node]);
  const known = new Set(state.classes.map((c) => c.name));
  await desk.begin([...classes].filter(([name]) => !known.has(name)));
  const rest = told.filter((n) => known.has(n.class) && !desk.supportOf(n.class).includes(n.node));
  if (rest.length) await desk.answer(rest.map(({ node, class: name }) => ({ node, class: name, verdict: "yes" })));
}

// --- the classes: what each claims now, what was said yes and no to, and its sentence ---

const FEW = 8; // answers that are listed before all are asked for
let whole = null; // the class of which all are listed
const refused = new Map(); // class -> why its sentence was not taken

function Sentence({ name, description, remarks }) {
  const id = "class-sentence";
  const save = () => settle(name, byId(id).value.trim());
  const why = refused.get(name);
  return html`<div class="sentence">
    <textarea id=${id} key=${name} rows="2" maxlength=${String(state.model.limits.description)} defaultValue=${description ?? ""}
      aria-label="What ${name} is, in a sentence" aria-describedby="${id}-note"
      placeholder=${description === "" ? "its name speaks for it" : "send, receive and filter e-mail"} />
    <p class="row">${button("Keep the sentence", save, { class: "plain small" })}
      ${description === null && button("Let its name speak", () => settle(name, ""), { class: "quiet small" })}</p>
    <ul id="${id}-note" class="small ${why ? "error" : "soft"}">${(why ? [why] : remarks).map((r) => html`<li>${sentence(r)}</li>`)}</ul>
  </div>`;
}

const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}${text.endsWith(".") ? "" : "."}`;

// Keeps the sentence. What the service refuses is told under the box, which keeps what was typed.
const settle = (name, text, first = false) =>
  attempt(async () => {
    refused.delete(name);
    const known = classNamed(name);
    if (text === "" && known && !known.support.length) return refused.set(name, "A class needs a sentence or a node.");
    try {
      await desk.put(name, desk.supportOf(name), known && text === "" ? null : text);
    } catch (error) {
      if (error.kind !== "wrong") throw error;
      refused.set(name, error.message);
      if (first) desk.draft(name);
      say(error.message);
    }
  });

// A new class starts with a name; a sentence, or its first node, follows.
function NewClass() {
  const start = (name, form) => {
    const text = form.elements["new-sentence"]?.value.trim() ?? "";
    if (text !== "") return settle(name, text, true);
    desk.draft(name);
  };
  return html`<${Naming} id="class-name" label="A new class" action="Start it" refuse=${desk.refusal} submit=${start}>
    ${state.model.describes && html`<textarea id="new-sentence" rows="2" maxlength=${String(state.model.limits.description)}
      aria-label="What the new class is, in a sentence" placeholder="what it is, in a sentence (if you like)" />`}</${Naming}>`;
}

function OneClass({ name }) {
  const active = name === state.active;
  const known = classNamed(name);
  const { support = [], rejected = [], description = null, remarks = [] } = known ?? {};
  const claims = claimsOf(name);
  return html`<section class="class ${active ? "active" : ""}">
    <h3>${button([mark(name), html`<span class="name">${name}</span>`, known && html`<span class="small soft">
      ${claims !== null && `${number(claims)} claimed`}
      <span class="said" aria-label="${support.length} yes, ${rejected.length} no"> ✓${support.length} ✗${rejected.length}</span></span>`],
      () => attempt(() => desk.activate(name)), { "aria-expanded": String(active) })}</h3>
    ${active && html`<div class="body">
      ${state.model.describes && html`<${More} title="In a sentence" open=${description !== null || !support.length}>
        <${Sentence} name=${name} description=${description} remarks=${remarks} /></${More}>`}
      ${!state.model.describes && remarks.map((remark) => html`<p class="small">${sentence(remark)}</p>`)}
      ${!support.length && html`<p class="small">${description !== null
        ? "Its description alone stands for it. Say yes to a node, and it becomes surer."
        : "It waits for its first node. Find one, and add it here."}</p>`}
      <${Said} name=${name} title="Yes" nodes=${support} /><${Said} name=${name} title="No" nodes=${rejected.map((node) => ({ node }))} />
      ${support[0]?.beta > 0 && html`<${Weights} known=${known} />`}
      ${known ? button(`Delete ${name}`, () => attempt(() => desk.erase(name)), { class: "quiet small" })
        : button("Forget this name", desk.discard, { class: "quiet small" })}</div>`}</section>`;
}

// What was answered, the newest first.
function Said({ name, title, nodes }) {
  if (!nodes.length) return null;
  const listed = whole === name ? nodes : nodes.slice(-FEW);
  const out = (node) => () => attempt(() => desk.decide(node, name, null));
  return html`<h4>${title}</h4><ul class="chips">${[...listed].reverse().map(({ node }) => html`<li key=${node}>
      ${link(node, { class: "link name", title: node })}
      ${button("×", out(node), { class: "quiet", "aria-label": `Take ${node} out of ${name}` })}</li>`)}</ul>
    ${nodes.length > listed.length && button(`Show all ${number(nodes.length)}`, () => ((whole = name), paint()), { class: "link small" })}`;
}

// β of the paper: how much each example counts in the prototype of its class.
function Weights({ known: { name, support, description_beta: said } }) {
  const weighed = [...support, ...(said ? [{ node: "its description", beta: said }] : [])].sort((a, b) => b.beta - a.beta);
  return html`<${More} title="More: the weight β of each"><ul class="bars">${weighed.slice(0, 30).map(({ node, beta }) => html`<li>
    <span class="name">${node}</span>${bar(beta, name)}<span class="num">${beta.toFixed(2)}</span></li>`)}</ul></${More}>`;
}

export function Find() {
  return html`<section id="find" aria-labelledby="find-title">
    <h2 id="find-title">Find</h2>
    <${Search} /><div id="ways"><${ByAttribute} /><${ByList} /></div><${Selection} />
    <h2>Classes</h2>
    <div id="classes">${names().map((name) => html`<${OneClass} name=${name} key=${name} />`)}<${NewClass} /></div>
    <${AttributeNames} /></section>`;
}
