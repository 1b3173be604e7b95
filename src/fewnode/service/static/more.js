// New nodes, by a form made from the dataset's own columns or as pasted rows; and the journal of all changes.

import { Reasons, button, html, link, mark, percent, plural } from "./parts.js";
import * as desk from "./desk.js";
import { attempt, judging, paint, refresh, say, state } from "./desk.js";
import { again } from "./find.js";
import * as service from "./service.js";

const SHOWN = 12; // columns of the form; more can be pasted
const byId = (id) => document.getElementById(id);
let form = null; // the columns, and the way a node is given: {columns, way}
let told = ""; // what was wrong with what was given
let added = []; // {node, class, probability, why}
const complain = (text) => ((told = text), paint());

export function NewNodes() {
  if (!form) {
    form = { columns: [], way: null };
    attempt(async () => (form = await service.columns()));
  }
  if (!form.way) return html`<h2>New nodes</h2><p class="soft">Reading the columns…</p>`;
  return html`<h2>New nodes</h2>
    <p class="soft small">They are kept by the service and judged at once; nothing is trained. History takes them back.</p>
    <p class="error small" role="alert">${told}</p><${Added} />
    <div class="columns"><${Single} /><${Several} /></div>`;
}

function Cell({ column: { name, kind, values = [] } }) {
  const id = `new-${name}`;
  const given = { id, "data-column": name, autocomplete: "off" };
  if (kind === "text") return html`<textarea ...${given} rows="2" />`;
  return html`<input ...${given} list=${values?.length ? `values-${name}` : null} inputmode=${kind === "number" ? "decimal" : null}
      placeholder=${kind === "vector" ? "numbers, with commas" : ""} />
    ${values?.length > 0 && html`<datalist id="values-${name}">${values.map((value) => html`<option value=${value} />`)}</datalist>`}`;
}

function Single() {
  const byWords = form.way === "attributes";
  const submit = (event) => {
    event.preventDefault();
    const node = byId("new-node").value.trim();
    if (!node) return complain("The new node needs a name.");
    const edges = byId("new-edges").value.split(/[\n,]/).map((name) => name.trim()).filter(Boolean);
    const fields = [...event.target.querySelectorAll("[data-column]")].filter((field) => field.value.trim() !== "");
    const row = Object.fromEntries(fields.map(({ dataset, value }) => [dataset.column, cell(value.trim(), dataset.column)]));
    attach([{ node, edges, ...(byWords ? { attributes: words(byId("new-words").value) } : { row }) }], event.target);
  };
  return html`<form class="stack" onsubmit=${submit}><h3>One node</h3>
    <label for="new-node">Name</label><input id="new-node" maxlength="200" autocomplete="off" />
    ${byWords ? html`<label for="new-words">Its words, each as often as it has it</label><textarea id="new-words" rows="3" placeholder="vpn tunnel tunnel" />`
      : form.columns.slice(0, SHOWN).map((column) => html`<label for="new-${column.name}">${column.name}<span class="soft"> ${column.kind}</span></label>
        <${Cell} column=${column} />`)}
    <label for="new-edges">Its neighbours, with commas</label><input id="new-edges" autocomplete="off" />
    <p><button class="solid">Add and judge</button></p></form>`;
}

function words(text) {
  const counts = {};
  for (const word of text.toLowerCase().split(/[\s,;]+/).filter(Boolean)) counts[word] = (counts[word] ?? 0) + 1;
  return counts;
}

function cell(text, name) {
  const kind = form.way === "attributes" ? "number" : form.columns.find((column) => column.name === name)?.kind;
  if (kind === "number" && !Number.isNaN(Number(text))) return Number(text);
  return kind === "vector" ? text.split(/[\s,]+/).filter(Boolean).map(Number) : text;
}

function Several() {
  const some = form.way === "attributes" ? ["words"] : form.columns.slice(0, 3).map((c) => c.name);
  const head = ["node", ...some, "edges"].join();
  const read = () => {
    const [first, ...rows] = table(byId("new-rows").value);
    const place = first?.findIndex((name) => name.trim().toLowerCase() === "node") ?? -1;
    if (!rows.length) return complain(`Paste a heading and rows, such as ${head}.`);
    if (place < 0) return complain("The heading needs a column called node.");
    attach(rows.map((row) => made(first, row, place)));
  };
  return html`<div class="stack"><h3>Several</h3>
    <label for="new-rows">Rows of a table with a heading; edges with spaces between them</label>
    <textarea id="new-rows" rows="6" spellcheck="false" placeholder="${head}\n…" />
    <p>${button("Add and judge them", read, { class: "plain" })}</p></div>`;
}

function made(first, row, place) {
  const node = { node: row[place].trim(), edges: [] };
  const content = {};
  first.forEach((name, i) => {
    const text = (row[i] ?? "").trim();
    if (i === place || text === "") return;
    if (name.trim().toLowerCase() === "edges") node.edges = text.split(/[\s;]+/);
    else if (form.way === "attributes" && name.trim().toLowerCase() === "words") Object.assign(content, words(text));
    else content[name.trim()] = cell(text, name.trim());
  });
  return { ...node, [form.way]: content };
}

// A table of commas or tabs; a cell in quotes may hold both, and lines.
function table(text) {
  const between = text.split("\n", 1)[0].includes("\t") ? "\t" : ",";
  const rows = [[""]];
  let inside = false;
  for (let i = 0; i < text.length; i++) {
    const [c, row] = [text[i], rows.at(-1)];
    if (inside && c === '"' && text[i + 1] === '"') row[row.length - 1] += text[++i];
    else if (c === '"') inside = !inside;
    else if (!inside && c === between) row.push("");
    else if (!inside && c === "\n") rows.push([""]);
    else if (inside || c !== "\r") row[row.length - 1] += c;
  }
  return rows.filter((row) => row.some((text) => text.trim() !== ""));
}

// Nothing that was given is dropped without a word.
function remarks({ unused = [], unknown = {}, missing = {} }) {
  const some = (list) => `${list.slice(0, 6).join(", ")}${list.length > 6 ? ", …" : ""}`;
  const strange = Object.entries(unknown).map(([node, cells]) => `${node}: ${some(Object.entries(cells).map(([c, v]) => `${c} ${v}`))}`);
  const left = Object.entries(missing).map(([node, columns]) => `${node}: ${some(columns)}`);
  return [
    unused.length && `Not used, for the dataset has no such attribute: ${some(unused)}.`,
    strange.length && `Values that the dataset does not have, and that count as missing: ${some(strange)}.`,
    left.length && `Left out: ${some(left)}.`,
  ].filter(Boolean).join(" ");
}

const attach = (nodes, filled = null) =>
  attempt(async () => {
    told = "";
    say(`Adding ${plural(nodes.length, "node")}…`);
    const found = await service.attach({ nodes, ...judging(), ...(state.by ? { by: state.by } : {}) });
    told = remarks(found);
    const judged = new Map((found.results ?? []).map((result) => [result.node, result]));
    added = nodes.map(({ node }) => ({ node, class: null, ...judged.get(node), why: null }));
    filled?.reset();
    if (!filled) byId("new-rows").value = "";
    await refresh();
    again();
    for (const one of added.slice(0, 5)) {
      const about = one.class ?? state.active;
      if (about !== null && state.model.explains) one.why = await service.why(one.node, about);
    }
  });

const Added = () => added.length > 0 && html`<div class="added"><h3>${plural(added.length, "node")} added</h3>
  <ul>${added.map((one) => html`<li key=${one.node}><p class="row">${link(one.node, { class: "link name" })}
    ${one.class === null ? html`<span class="soft">${state.classes.length ? "none of the classes" : "no class yet"}</span>`
      : html`<span class="name">${mark(one.class)}${one.class} ${percent(one.probability)}</span>`}</p>
    ${one.why && html`<${Reasons} why=${one.why} />`}</li>`)}</ul></div>`;

// --- the journal ---

const PAGE = 100;
let older = { version: null, entries: [] }; // entries beyond the newest
const moment = (when) => new Date(when).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" });

export function History() {
  const { entries = [], total = 0 } = state.journal ?? {};
  if (older.version !== state.version) older = { version: state.version, entries: [] };
  const listed = [...entries, ...older.entries];
  const more = async () => older.entries.push(...(await service.journal(PAGE, listed.length)).entries);
  const file = (name) => button(name, () => attempt(() => desk.save(name, {})), { class: "plain small", "aria-label": `Download ${name}` });
  return html`<h2>History</h2>
    <p class="soft small">Every change, the newest first. The service keeps it; Undo goes back one step at a time.</p>
    <p class="row who"><label for="by">Your name, for the journal</label><input id="by" maxlength="80" autocomplete="name"
      placeholder="nobody is named" defaultValue=${state.by} onchange=${(event) => desk.signed(event.target.value.trim())} /></p>
    <p class="row"><span class="small">Take it with you</span>${["journal.csv", "journal.json"].map(file)}</p>
    <ol class="entries">${listed.map((e) => html`<li class=${e.undone ? "undone" : ""} key=${e.number}>
      <time class="soft small num" datetime=${e.when}>${moment(e.when)}</time>
      <span class="name">${e.what}${e.undone && html`<span class="soft"> (undone)</span>`}</span>
      <span class="soft small">${e.by ?? ""}</span></li>`)}</ol>
    ${listed.length < total && button("Show older ones", () => attempt(more), { class: "plain" })}`;
}
