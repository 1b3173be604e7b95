// New nodes: a form made from the dataset's own columns, or pasted rows; each with its class and why.

import * as api from "./api.js";
import { lookAt } from "./actions.js";
import { button, byId, el, mark, percent, plural, redraw } from "./dom.js";
import { slot } from "./memory.js";
import { refresh } from "./refresh.js";
import { judging, on, state, tell } from "./state.js";
import { attempt, say } from "./status.js";
import { shown } from "./views.js";
import { reasons } from "./why.js";

const SHOWN = 12; // columns of the form; more can be pasted
const panel = byId("new");
let form = null; // the columns, and the way a node is given: {columns, way}
let told = ""; // what was wrong with what was given
let added = []; // {node, class, probability, member, why}

function draw() {
  if (panel.hidden || !state.model) return;
  if (!form) return redraw(panel, el("h2", {}, "New nodes"), el("p", { class: "soft" }, "Reading the columns…"));
  redraw(
    panel,
    el("h2", {}, "New nodes"),
    el(
      "p",
      { class: "soft small" },
      "They are kept by the service and judged at once; nothing is trained. History takes them back.",
    ),
    el("p", { class: "error small", role: "alert" }, told),
    results(),
    el("div", { class: "columns" }, single(), pasted()),
  );
}

// --- one node ---

const input = (column) => {
  const attributes = {
    id: `new-${column.name}`,
    "data-column": column.name,
    "data-key": `new ${column.name}`,
    autocomplete: "off",
  };
  if (column.kind === "number") return el("input", { ...attributes, inputmode: "decimal" });
  if (column.kind === "text") return el("textarea", { ...attributes, rows: "2" });
  if (column.values?.length) {
    const id = `values-${column.name}`;
    return [
      el("input", { ...attributes, list: id }),
      el(
        "datalist",
        { id },
        column.values.map((value) => el("option", { value })),
      ),
    ];
  }
  return el("input", { ...attributes, placeholder: column.kind === "vector" ? "numbers, with commas" : "" });
};

function single() {
  const byWords = form.way === "attributes";
  const submit = (event) => {
    event.preventDefault();
    const node = byId("new-node").value.trim();
    if (!node) return complain("The new node needs a name.");
    const edges = byId("new-edges")
      .value.split(/[\n,]/)
      .map((name) => name.trim())
      .filter(Boolean);
    const content = byWords ? { attributes: words(byId("new-words").value) } : { row: cells(event.target) };
    attach([{ node, edges, ...content }]);
  };
  return el(
    "form",
    { class: "stack", onsubmit: submit },
    el("h3", {}, "One node"),
    el("label", { for: "new-node" }, "Name"),
    el("input", { id: "new-node", maxlength: "200", autocomplete: "off", "data-key": "new node" }),
    byWords
      ? [
          el("label", { for: "new-words" }, "Its words, each as often as it has it"),
          el("textarea", { id: "new-words", rows: "3", "data-key": "new words", placeholder: "vpn tunnel tunnel" }),
        ]
      : form.columns
          .slice(0, SHOWN)
          .map((column) => [
            el("label", { for: `new-${column.name}` }, column.name, el("span", { class: "soft" }, ` ${column.kind}`)),
            input(column),
          ]),
    el("label", { for: "new-edges" }, "Its neighbours, with commas"),
    el("input", { id: "new-edges", autocomplete: "off", "data-key": "new edges" }),
    el("p", {}, el("button", { class: "solid" }, "Add and judge")),
  );
}

function words(text) {
  const counts = {};
  for (const word of text
    .toLowerCase()
    .split(/[\s,;]+/)
    .filter(Boolean))
    counts[word] = (counts[word] ?? 0) + 1;
  return counts;
}

function value(text, kind) {
  if (kind === "number" && text !== "" && !Number.isNaN(Number(text))) return Number(text);
  return kind === "vector"
    ? text
        .split(/[\s,]+/)
        .filter(Boolean)
        .map(Number)
    : text;
}

function cells(from) {
  const given = [...from.querySelectorAll("[data-column]")].filter((field) => field.value.trim() !== "");
  const kind = (name) => form.columns.find((c) => c.name === name).kind;
  return Object.fromEntries(
    given.map(({ dataset, value: text }) => [dataset.column, value(text.trim(), kind(dataset.column))]),
  );
}

// --- many ---

function pasted() {
  const head =
    form.way === "attributes"
      ? "node,words,edges"
      : ["node", ...form.columns.slice(0, 3).map((c) => c.name), "edges"].join();
  const text = el("textarea", {
    id: "new-rows",
    rows: "6",
    spellcheck: "false",
    placeholder: `${head}\n…`,
    "data-key": "new rows",
  });
  const read = () => {
    const [first, ...rows] = table(text.value);
    if (!first || !rows.length) return complain(`Paste a heading and rows, such as ${head}.`);
    const place = first.findIndex((name) => name.trim().toLowerCase() === "node");
    if (place < 0) return complain("The heading needs a column called node.");
    attach(rows.filter((row) => row.some((c) => c.trim())).map((row) => made(first, row, place)));
  };
  return el(
    "div",
    { class: "stack" },
    el("h3", {}, "Several"),
    el("label", { for: "new-rows" }, "Rows of a table with a heading; edges with spaces between them"),
    text,
    el("p", {}, button("Add and judge them", read, { class: "plain" })),
  );
}

function made(first, row, place) {
  const node = { node: row[place].trim(), edges: [] };
  const content = {};
  first.forEach((name, i) => {
    const cell = (row[i] ?? "").trim();
    if (i === place || cell === "") return;
    if (name.trim().toLowerCase() === "edges") node.edges = cell.split(/[\s;]+/);
    else if (form.way === "attributes" && name.trim().toLowerCase() === "words") Object.assign(content, words(cell));
    else
      content[name.trim()] = value(
        cell,
        form.way === "attributes" ? "number" : form.columns.find((c) => c.name === name.trim())?.kind,
      );
  });
  return { ...node, [form.way]: content };
}

// A table of commas or tabs; a cell in quotes may hold both, and lines.
function table(text) {
  const mark = text.split("\n", 1)[0].includes("\t") ? "\t" : ",";
  const rows = [[""]];
  let inside = false;
  for (let i = 0; i < text.length; i++) {
    const [c, row] = [text[i], rows.at(-1)];
    if (inside && c === '"' && text[i + 1] === '"') row[row.length - 1] += text[++i];
    else if (c === '"') inside = !inside;
    else if (!inside && c === mark) row.push("");
    else if (!inside && c === "\n") rows.push([""]);
    else if (inside || c !== "\r") row[row.length - 1] += c;
  }
  return rows.filter((row) => row.length > 1 || row[0].trim() !== "");
}

// --- what became of them ---

function complain(text) {
  told = text;
  draw();
}

// Nothing that was given is dropped without a word.
function remarks({ unused = [], unknown = {}, missing = {} }) {
  const some = (list) => `${list.slice(0, 6).join(", ")}${list.length > 6 ? ", …" : ""}`;
  const strange = Object.entries(unknown).map(
    ([node, cells]) => `${node}: ${some(Object.entries(cells).map(([c, v]) => `${c} ${v}`))}`,
  );
  const left = Object.entries(missing).map(([node, columns]) => `${node}: ${some(columns)}`);
  return [
    unused.length && `Columns that the dataset does not use: ${some(unused)}.`,
    strange.length && `Values that the dataset does not have, and that count as missing: ${some(strange)}.`,
    left.length && `Left out: ${some(left)}.`,
  ]
    .filter(Boolean)
    .join(" ");
}

const attach = (nodes) =>
  attempt(async () => {
    told = "";
    say(`Adding ${plural(nodes.length, "node")}…`);
    const found = await api.attach({ nodes, ...judging(), ...(state.by ? { by: state.by } : {}) });
    told = remarks(found);
    const judged = new Map((found.results ?? []).map((result) => [result.node, result]));
    added = nodes.map(({ node }) => ({ node, class: null, ...judged.get(node), why: null }));
    for (const field of panel.querySelectorAll("form input, form textarea")) field.value = "";
    state.model.data.nodes += nodes.length;
    tell("network");
    draw();
    await refresh(null);
    for (const one of added.slice(0, 5)) {
      const about = one.class ?? state.active;
      if (about !== null && state.model.explains) one.why = await api.why(one.node, about);
    }
    draw();
  });

function results() {
  if (!added.length) return null;
  return el(
    "div",
    { class: "added" },
    el("h3", {}, plural(added.length, "node") + " added"),
    el(
      "ul",
      {},
      added.map((one) =>
        el(
          "li",
          {},
          el(
            "p",
            { class: "row" },
            button(one.node, lookAt(one.node), { class: "link name" }),
            one.class === null
              ? el("span", { class: "soft" }, state.classes.length ? "none of the classes" : "no class yet")
              : el("span", { class: "name" }, mark(slot(one.class)), `${one.class} ${percent(one.probability)}`),
          ),
          one.why && reasons(one.why),
        ),
      ),
    ),
  );
}

on("view", () => {
  if (shown() !== "new") return;
  draw();
  if (!form) attempt(async () => ((form = await api.columns()), draw()));
});
on("classes", draw);
