// Find: by name, by text, by an attribute, or near a node. A combobox whose list is walked with the arrow keys.

import * as api from "./api.js";
import { look } from "./actions.js";
import { button, byId, el, mark, number, plural } from "./dom.js";
import { slot } from "./memory.js";
import { choose as select } from "./selection.js";
import { classOf, on } from "./state.js";
import { attempt } from "./status.js";

const PAGE = 20;
const PAUSE = 120;
const LARGEST = 1 << 20; // bytes of a list

const input = byId("search");
const list = byId("found");
const note = byId("search-note");
const tools = byId("found-tools");
let asked = null; // what was asked for: {search, in} or {attribute, value} or {near}
let found = [];
let total = 0;
let at = -1;
let latest = 0;
let timer = 0;

function option({ node, class: known, degree, matched, words = [] }, i) {
  const own = classOf(node);
  const text = words.length && matched !== "name" ? words.slice(0, 5).join(", ") : null;
  return el(
    "li",
    { role: "option", id: `found-${i}`, "aria-selected": String(i === at), onclick: () => choose(i) },
    el("span", { class: "name" }, own !== null && mark(slot(own)), node),
    el("span", { class: "soft small" }, [text, known, plural(degree, "neighbour")].filter(Boolean).join(" · ")),
  );
}

const title = ({ search, attribute, value, near }) =>
  near ? `Nearest to ${near}` : attribute ? `${attribute}${value ? ` = ${value}` : ""}` : `“${search}”`;

function show() {
  list.replaceChildren(...found.map(option));
  list.hidden = tools.hidden = found.length === 0;
  input.setAttribute("aria-expanded", String(!list.hidden));
  if (!asked) note.textContent = "";
  else if (total === 0)
    note.textContent = asked.search ? "No node has that in its name or text." : `No node: ${title(asked)}.`;
  else
    note.textContent = `${asked.search ? "" : `${title(asked)}: `}${plural(total, "node")}${total > found.length ? `; the first ${number(found.length)} are listed` : ""}.`;
  tools.replaceChildren(
    button(`Select these ${number(found.length)}`, () => take(), { class: "link" }),
    button("Close the list", () => (clear(), input.focus()), { class: "link" }),
  );
  point(at);
}

const take = () =>
  select(
    title(asked),
    found.map(({ node }) => ({ node, class: null })),
  );

function point(i) {
  at = Math.min(i, found.length - 1);
  [...list.children].forEach((row, j) => row.setAttribute("aria-selected", String(j === at)));
  if (at < 0) return input.removeAttribute("aria-activedescendant");
  input.setAttribute("aria-activedescendant", `found-${at}`);
  list.children[at].scrollIntoView({ block: "nearest" });
}

async function ask(what, more = false) {
  const mine = ++latest;
  if (!what) return clear();
  asked = what;
  note.textContent = "Searching…";
  const answer = await api.search({ ...what, offset: more ? found.length : 0, limit: PAGE });
  if (mine !== latest) return;
  found = more ? [...found, ...answer.nodes] : answer.nodes;
  total = answer.total;
  if (!more) at = -1;
  show();
}

const typed = () => (input.value.trim() === "" ? null : { search: input.value.trim(), in: "all" });

// Other ways to ask fill the same list.
export const find = (what) => attempt(() => ask(what)).then(() => note.scrollIntoView({ block: "nearest" }));

function clear() {
  latest++;
  asked = null;
  found = [];
  total = 0;
  at = -1;
  show();
}

const choose = (i) => attempt(() => look(found[i].node));

function more() {
  if (found.length < total) return attempt(() => ask(asked, true));
}

input.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(() => attempt(() => ask(typed())), PAUSE);
});
input.addEventListener("keydown", async (event) => {
  if (event.key === "ArrowDown") {
    event.preventDefault();
    if (list.hidden) return attempt(() => ask(typed()));
    if (at === found.length - 1) await more();
    point(at + 1);
  } else if (event.key === "ArrowUp") {
    event.preventDefault();
    point(Math.max(at - 1, -1));
  } else if (event.key === "Enter") {
    event.preventDefault();
    clearTimeout(timer);
    if (asked?.search !== typed()?.search) await attempt(() => ask(typed())); // typed faster than it was asked
    if (found.length) choose(Math.max(at, 0));
  } else if (event.key === "Escape") {
    if (!list.hidden) event.preventDefault(); // the first Escape closes the list, the next empties the box
    clear();
  }
});
list.addEventListener("scroll", () => {
  if (list.scrollTop + list.clientHeight > list.scrollHeight - 20) more();
});
on("classes", () => found.length && show());
on("network", () => asked && attempt(() => ask(asked))); // nodes were added: what was not there may be there now

// --- other ways to begin ---

const options = el("datalist", { id: "attribute-names" });
document.body.append(options);
let pause = 0;

// A field that completes the names of attributes while they are typed.
export function completed(field) {
  field.setAttribute("list", options.id);
  field.addEventListener("input", () => {
    clearTimeout(pause);
    pause = setTimeout(() => attempt(() => complete(field.value.trim())), PAUSE);
  });
  return field;
}

async function complete(text) {
  const { attributes } = await api.attributes(text);
  options.replaceChildren(...attributes.map(({ name, nodes }) => el("option", { value: name }, number(nodes))));
}

function ways() {
  const attribute = completed(el("input", { id: "attribute", autocomplete: "off", spellcheck: "false" }));
  const value = el("input", { id: "attribute-value", autocomplete: "off", spellcheck: "false", placeholder: "any" });
  const submit = (event) => {
    event.preventDefault();
    if (attribute.value.trim()) find({ attribute: attribute.value.trim(), value: value.value.trim() });
  };
  return el(
    "details",
    {},
    el("summary", {}, "By an attribute’s value"),
    el(
      "form",
      { class: "stack", onsubmit: submit },
      el("label", { for: "attribute" }, "Attribute"),
      attribute,
      el("label", { for: "attribute-value" }, "Value"),
      el("span", { class: "row grow" }, value, el("button", { class: "plain" }, "Find")),
    ),
  );
}

on("model", () => byId("ways").childElementCount || byId("ways").append(ways(), pasted()));

function pasted() {
  const told = el("p", { class: "small error", role: "alert" });
  const text = el("textarea", { id: "pasted", rows: "3", spellcheck: "false", placeholder: "node\nor node,class" });
  const file = el("input", {
    type: "file",
    id: "pasted-file",
    accept: ".csv,.tsv,.txt,text/csv,text/plain",
    onchange: async () => {
      if (!file.files.length) return;
      if (file.files[0].size > LARGEST)
        return (told.textContent = "The file is larger than 1 MB, which is the most of a list. Give it in parts.");
      text.value = await file.files[0].text();
      read();
    },
  });
  const read = () =>
    attempt(async () => {
      told.textContent = "";
      if (text.value.trim() === "") return (told.textContent = "Paste a list first, or choose a file.");
      const { nodes, unknown, repeated, said_no: no, unused_columns: unused = [] } = await api.list(text.value);
      const places = unknown.slice(0, 5).map((u) => `line ${u.line}: ${u.text}`);
      const notes = [
        unknown.length &&
          `${plural(unknown.length, "line")} named no node (${places.join("; ")}${unknown.length > 5 ? "; …" : ""}).`,
        repeated && `${plural(repeated, "repeated line")} left out.`,
        no && `${plural(no, "line")} whose answer is no left out.`,
        unused.length && `Columns that are not used: ${unused.join(", ")}.`,
      ].filter(Boolean);
      if (nodes.length === 0) return (told.textContent = notes.join(" ") || "No node of this network is in it.");
      select("The list", nodes, notes);
    });
  return el(
    "details",
    {},
    el("summary", {}, "By a list, pasted or from a file"),
    el(
      "div",
      { class: "stack" },
      el("label", { for: "pasted" }, "A node a line, or node,class"),
      text,
      el("label", { for: "pasted-file" }, "or a CSV file"),
      file,
      button("Read the list", read, { class: "plain" }),
      told,
    ),
  );
}
