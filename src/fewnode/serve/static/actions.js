// What a visitor does: each action tells what it is doing, asks the service, and tells how it went.

import * as api from "./api.js";
import { byId, el, percent, plural } from "./dom.js";
import { examples } from "./examples.js";
import { keep } from "./memory.js";
import { judge, judging, more, refresh } from "./refresh.js";
import { classOf, descriptionOf, labelled, names, state, supportOf, tell } from "./state.js";
import { attempt, calm, say, warn } from "./status.js";

const WIDE = matchMedia("(min-width: 1101px)"); // where the node is beside the map

export async function look(name, focus = true) {
  if (focus) say(`Looking at ${name}…`);
  state.looking = name;
  const found = await api.node(name);
  if (state.looking !== name) return;
  state.node = found;
  state.judged = null;
  state.positions.set(found.node, found.position);
  tell("node");
  if (focus) byId("node-title")?.focus();
  if (focus) say(`${name}: ${plural(found.neighbours_total, "neighbour")}.`);
  await judge();
}

export function close() {
  state.node = state.judged = state.looking = null;
  tell("node");
}

export function activate(name) {
  state.active = name;
  tell("active");
}

// A class needs a node or a sentence to exist; until then its name waits here.
export function draft(name) {
  const trimmed = name.trim();
  const reason = refusal(trimmed);
  if (reason) return reason;
  state.draft = trimmed;
  state.active = trimmed;
  tell("classes");
  say(`${trimmed} waits for its first node${state.model.describes ? ", or a sentence" : ": find one and add it"}.`);
  return null;
}

export function discard() {
  state.draft = null;
  state.active = names().at(-1) ?? null;
  tell("classes");
}

export function refusal(name) {
  if (name === "") return "A class needs a name.";
  if (name === "." || name === "..") return `A class cannot be called ${name}`;
  if ([...name].length > 200) return "A name has at most 200 characters.";
  if (names().includes(name)) return `There is a class ${name} already.`;
  return null;
}

// A class as it is from now on; without a node and without a description it is no more.
async function write(name, support, description = descriptionOf(name)) {
  const there = support.length > 0 || description !== null;
  const answer = there
    ? await api.put(name, { support, description }, state.version)
    : await api.remove(name, state.version);
  state.version = answer.version;
}

// `placed`: what is to be done as soon as the class is on the page.
export async function describe(name, description, placed = () => {}) {
  say(`Reading what ${name} is…`);
  await write(name, supportOf(name), description);
  state.active = name;
  await refresh(placed);
}

export async function add(name, node) {
  const before = classOf(node);
  if (before === name) return;
  say(`Adding ${node} to ${name}…`);
  const asked = state.suggestions?.nodes[0]?.node === node;
  if (asked) waiting(true);
  try {
    if (before !== null) await write(before, without(before, node));
    await write(name, [...supportOf(name), node]);
  } catch (error) {
    if (asked) waiting(false);
    throw error;
  }
  state.active = name;
  state.answered.delete(node);
  await refresh();
}

// The question is answered, and the next one on its way.
function waiting(stale) {
  state.suggestions = { ...state.suggestions, stale };
  tell("suggestions");
}

const without = (name, node) => supportOf(name).filter((other) => other !== node);

export async function drop(name, node) {
  const left = without(name, node);
  if (left.length === 0 && descriptionOf(name) === null) return erase(name);
  say(`Taking ${node} out of ${name}…`);
  await write(name, left);
  await refresh();
}

export async function erase(name) {
  const [nodes, said] = [supportOf(name), descriptionOf(name)];
  say(`Deleting ${name}…`);
  await write(name, [], null);
  await refresh();
  const undo = () => attempt(async () => (calm(), await write(name, nodes, said), await refresh()));
  const had = `It had ${plural(nodes.length, "labelled node")}${said === null ? "" : " and a description"}.`;
  warn(`${name} is deleted.`, had, ["Undo", undo]);
}

// "No": the node is not asked about again in this tab.
export async function reject(node) {
  state.answered.set(node, true);
  keep();
  say(`${node} is set aside.`);
  if (state.suggestions)
    state.suggestions = { ...state.suggestions, nodes: state.suggestions.nodes.filter((s) => s.node !== node) };
  tell("suggestions", "claims");
  if ((state.suggestions?.nodes.length ?? 0) === 0) await more();
}

export async function judgeBy(option, value) {
  state.options[option] = value;
  tell("options");
  await refresh();
}

// The dataset's own labels answer the questions, one after the other, where a person would.
export async function answerFromData(count) {
  for (let done = 0; done < count && state.suggestions?.nodes.length; done++) {
    const { node } = state.suggestions.nodes[0];
    const truth = (await api.node(node)).class;
    await (names().includes(truth) ? add(truth, node) : reject(node));
  }
  const { precision, recall } = state.progress ?? {};
  if (precision && recall)
    say(
      `${plural(labelled(), "labelled node")}: ${percent(precision.value)} of what is claimed is right, ${percent(recall.value)} of what is there is found.`,
    );
}

export async function save(file) {
  say(`Writing ${file}…`);
  const address = URL.createObjectURL(await api.table(file, judging()));
  el("a", { href: address, download: file }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
  say(`${file} is in your downloads.`);
}

// Unseen classes with one node each, other nodes at every try.
let tries = 0;
export const offered = () => examples(tries);

export async function tryIt() {
  const chosen = offered();
  tries++;
  say(`Starting ${chosen.map((c) => c.name).join(", ")} with one node each…`);
  for (const { name, node } of chosen) await write(name, [node]);
  await Promise.all([refresh(), WIDE.matches && look(chosen[0].node, false)]);
}
