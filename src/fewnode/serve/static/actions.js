// What a visitor does: each action tells what it is doing, asks the service, and tells how it went.

import * as api from "./api.js";
import { byId, button, el, number, percent, plural } from "./dom.js";
import { classOf, labelled, names, on, slot, state, supportOf, tell } from "./state.js";

const MAP = 4000;
const BEST = 50;
const SUGGESTIONS = 6;
const PAINTED = 60_000;
const POLL = 1500;
const WIDE = matchMedia("(min-width: 1101px)"); // where the node is beside the map
const TOGETHER = 4;

export function say(text) {
  byId("status").textContent = text;
}

let running = 0;
function busy(change) {
  running += change;
  document.body.classList.toggle("busy", running > 0);
  document.body.setAttribute("aria-busy", String(running > 0));
}

// Runs an action; its trouble, if any, becomes words. Answers whether all went well.
export async function attempt(action) {
  busy(1);
  try {
    await action();
    return true;
  } catch (error) {
    await trouble(error);
    return false;
  } finally {
    busy(-1);
  }
}

async function trouble(error) {
  if (!(error instanceof api.Trouble)) {
    console.error(error);
    return warn("Something in this page went wrong.", "Reload it; your classes are kept by the service.", ["Reload", () => location.reload()]);
  }
  say(error.message);
  if (error.kind === "conflict") {
    await attempt(refresh);
    return warn(error.message, error.hint);
  }
  if (error.kind === "gone" || error.kind === "starting") {
    warn(error.message, error.hint);
    return watch();
  }
  return warn(error.message, error.hint);
}

export function warn(message, hint, action = null) {
  const box = byId("alert");
  box.hidden = false;
  box.replaceChildren(
    el("p", {}, el("strong", {}, message), " ", hint),
    el("p", { class: "row" }, action && button(...action), button("Dismiss", calm, { class: "quiet" })),
  );
}

export function calm() {
  byId("alert").hidden = true;
  byId("alert").replaceChildren();
}

// The service is gone, or not ready: ask until it is, then see what it has.
let watching = false;
async function watch() {
  if (watching) return;
  watching = true;
  document.body.classList.add("away");
  do await new Promise((done) => setTimeout(done, POLL));
  while (!(await api.back()));
  watching = false;
  document.body.classList.remove("away");
  calm();
  say("The service is back.");
  await attempt(state.model ? refresh : open);
}

api.onBusy((seconds) => say(`The service is busy; asking again in ${seconds} s…`));

// Everything the page starts with.
export async function open() {
  say("Reading the network…");
  const model = await api.model();
  const map = model.map === false ? null : await api.map(MAP);
  state.model = model;
  state.map = map;
  map?.nodes.forEach((name, i) => state.positions.set(name, [map.x[i], map.y[i]]));
  state.options.openSet = model.open_set; // a class that must not claim strangers is what a visitor means by one
  state.options.transductive = model.mode === "transductive";
  recall();
  tell("model", "map");
  await refresh();
  performance.mark("ready");
}

// The classes as the service has them, then all that follows from them. A newer call makes an older one moot.
let latest = 0;
export async function refresh() {
  const mine = ++latest;
  const current = () => mine === latest;
  const answer = await api.classes();
  if (!current()) return;
  state.version = answer.version;
  state.classes = answer.classes;
  if (state.classes.some((c) => c.name === state.draft)) state.draft = null;
  if (!names().includes(state.active)) state.active = names()[0] ?? null;
  state.classes.forEach((c) => slot(c.name));
  tell("classes");
  if (state.classes.length === 0) {
    Object.assign(state, { claims: null, suggestions: null, progress: null, judged: null, colours: null });
    tell("claims", "suggestions", "progress", "judged", "colours");
    return say(`${plural(state.model.data.nodes, "node")}, no class yet.`);
  }
  const what = plural(state.classes.length, "class");
  say(`Asking which of ${number(state.model.data.nodes)} nodes ${what} of ${plural(labelled(), "labelled node")} claim…`);
  const began = performance.now();
  const late = state.model.suggests === false ? null : more(current);
  late?.catch(() => {}); // its trouble is told below, after that of the others
  await Promise.all([
    place(current),
    ask(api.classify({ ...judging(), all: true, limit: BEST, explain: true }), "claims", current),
    state.map && ask(paint(), "colours", current),
    measure(current),
    judge(current),
  ]);
  if (current()) say(`${summary()} (${Math.round(performance.now() - began)} ms)`);
  await late;
}

const judging = () => ({
  mode: state.options.transductive ? "transductive" : "inductive",
  open_set: state.options.openSet,
});

// The classes of the map's nodes; where there are many classes, of every so many nodes: an answer has its size.
async function paint() {
  const step = Math.ceil((state.map.nodes.length * state.classes.length) / PAINTED);
  const nodes = state.map.nodes.filter((_, i) => i % step === 0);
  const { classes, results } = await api.classify({ ...judging(), nodes, explain: false });
  return { classes, of: (i) => (i % step === 0 ? results[i / step] : undefined) };
}

async function ask(answer, topic, current) {
  const found = await answer;
  if (!current()) return;
  state[topic] = found;
  tell(topic);
}

function summary() {
  const counts = Object.entries(state.claims?.counts ?? {});
  return counts.map(([name, count]) => `${name} claims ${number(count)}`).join(", ") + ` of ${plural(state.model.data.nodes, "node")}.`;
}

// Where the support nodes are on the map; those outside its sample are asked for one by one.
async function place(current) {
  if (!state.map) return;
  const missing = state.classes.flatMap((c) => c.support).filter((s) => !state.positions.has(s.node));
  for (let i = 0; i < missing.length; i += TOGETHER)
    for (const found of await Promise.all(missing.slice(i, i + TOGETHER).map((s) => api.node(s.node)))) state.positions.set(found.node, found.position);
  if (missing.length && current()) tell("places");
}

async function measure(current) {
  const found = await api.progress();
  if (!current()) return;
  const each = Object.values(found.per_class).map((c) => c.accuracy);
  found.mean = each.length ? each.reduce((sum, a) => sum + a, 0) / each.length : null; // classes count the same
  state.progress = found;
  remember(found.mean);
  tell("progress");
}

// Where the data knows every class, only nodes of these classes are asked about: those that accuracy is measured on.
async function more(current = () => true) {
  const exclude = [...state.answered.keys()].slice(-state.model.limits.nodes);
  await ask(api.suggest({ count: SUGGESTIONS, exclude, known: allKnown() }), "suggestions", current);
}

export function allKnown() {
  const told = new Set(Object.values(state.model.classes).flat());
  return state.classes.length > 1 && state.classes.every((c) => told.has(c.name));
}

// What the classes say of the node looked at, and of its neighbours.
async function judge(current = () => true) {
  if (!state.node || state.classes.length === 0) return;
  const nodes = [state.node.node, ...state.node.neighbours.map((n) => n.node)];
  const answer = await api.classify({ ...judging(), nodes, explain: true });
  if (!current() || state.node?.node !== nodes[0]) return;
  state.judged = { classes: answer.classes, of: new Map(answer.results.map((r) => [r.node, r])) };
  tell("judged");
}

// Accuracies of the same set of classes make one curve; another set of classes starts another.
const memory = () => `fewnode ${state.model.data.name}`;

function remember(accuracy) {
  const of = JSON.stringify(state.classes.map((c) => c.name).sort());
  if (state.history.of !== of) state.history = Object.assign([], { of });
  const point = { labelled: labelled(), accuracy };
  const last = state.history.at(-1);
  if (accuracy === null || (last && last.labelled === point.labelled && last.accuracy === accuracy)) return;
  if (last?.labelled === point.labelled) state.history.pop();
  state.history.push(point);
  keep();
}

function keep() {
  const { history, answered } = state;
  sessionStorage.setItem(memory(), JSON.stringify({ of: history.of, points: history, answered: [...answered] }));
}

function recall() {
  try {
    const { of, points, answered } = JSON.parse(sessionStorage.getItem(memory())) ?? {};
    if (Array.isArray(points)) state.history = Object.assign(points, { of });
    if (Array.isArray(answered)) state.answered = new Map(answered);
  } catch {
    sessionStorage.removeItem(memory()); // written by another version of the page
  }
}

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

// A class needs a node to exist; until then its name waits here.
export function draft(name) {
  const trimmed = name.trim();
  const reason = refusal(trimmed);
  if (reason) return reason;
  state.draft = trimmed;
  state.active = trimmed;
  tell("classes");
  say(`${trimmed} waits for its first node: find one and add it.`);
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

async function write(name, nodes) {
  const answer = nodes.length ? await api.put(name, nodes, state.version) : await api.remove(name, state.version);
  state.version = answer.version;
}

export async function add(name, node) {
  const before = classOf(node);
  if (before === name) return;
  say(`Adding ${node} to ${name}…`);
  if (state.suggestions?.nodes[0]?.node === node) {
    state.suggestions = { ...state.suggestions, stale: true };
    tell("suggestions");
  }
  if (before !== null) await write(before, supportOf(before).filter((other) => other !== node));
  await write(name, [...supportOf(name), node]);
  state.active = name;
  state.answered.delete(node);
  await refresh();
}

export async function drop(name, node) {
  const left = supportOf(name).filter((other) => other !== node);
  if (left.length === 0) return erase(name);
  say(`Taking ${node} out of ${name}…`);
  await write(name, left);
  await refresh();
}

export async function erase(name) {
  const nodes = supportOf(name);
  say(`Deleting ${name}…`);
  await write(name, []);
  await refresh();
  const undo = () => attempt(async () => (calm(), await write(name, nodes), await refresh()));
  warn(`${name} is deleted.`, `It had ${plural(nodes.length, "labelled node")}.`, ["Undo", undo]);
}

// "No": the node is not asked about again in this tab.
export async function reject(node) {
  state.answered.set(node, true);
  keep();
  say(`${node} is set aside.`);
  if (state.suggestions) state.suggestions = { ...state.suggestions, nodes: state.suggestions.nodes.filter((s) => s.node !== node) };
  tell("suggestions", "claims");
  if ((state.suggestions?.nodes.length ?? 0) === 0) await more();
}

export async function judgeBy(option, value) {
  state.options[option] = value;
  await refresh();
}

// The dataset's own labels answer the questions, one after the other, where a person would.
export async function answerFromData(count) {
  for (let done = 0; done < count && state.suggestions?.nodes.length; done++) {
    const { node } = state.suggestions.nodes[0];
    const truth = (await api.node(node)).class;
    await (supportOf(truth).length ? add(truth, node) : reject(node));
  }
  if (state.progress?.mean != null) say(`${plural(labelled(), "labelled node")}: ${percent(state.progress.mean)} accuracy on held-out nodes.`);
}

export async function save(file) {
  say(`Writing ${file}…`);
  const address = URL.createObjectURL(await api.table(file));
  el("a", { href: address, download: file }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
  say(`${file} is in your downloads.`);
}

// Three classes the model was not trained on: two that lie close on the map, so that there is something to learn, and
// the one farthest from both. One node of each, another one at every try.
const SHARE = 0.01;
let tries = 0;
export function examples() {
  const { map, model } = state;
  if (!map) return [];
  const members = new Map();
  map.nodes.forEach((_, i) => {
    const name = map.class_names[map.class[i]];
    if (model.classes.test.includes(name)) members.set(name, [...(members.get(name) ?? []), i]);
  });
  const middle = (of, axis) => of.reduce((sum, i) => sum + axis[i], 0) / of.length;
  const large = [...members]
    .filter(([, of]) => of.length >= Math.max(5, SHARE * map.shown))
    .map(([name, of]) => ({ name, of, x: middle(of, map.x), y: middle(of, map.y) }));
  if (large.length < 2) return [];
  const apart = (a, b) => Math.hypot(a.x - b.x, a.y - b.y);
  const pairs = large.flatMap((a, i) => large.slice(i + 1).map((b) => [a, b])).sort((p, q) => apart(...p) - apart(...q));
  const [a, b] = pairs[0];
  const rest = large.filter((c) => c !== a && c !== b).sort((c, d) => Math.min(apart(d, a), apart(d, b)) - Math.min(apart(c, a), apart(c, b)));
  return [a, b, ...rest.slice(0, 1)].map(({ name, of }) => ({ name, node: map.nodes[of[(7 * tries + Math.floor(of.length / 2)) % of.length]] }));
}

export async function tryIt() {
  const chosen = examples();
  tries++;
  say(`Starting ${chosen.map((c) => c.name).join(", ")} with one node each…`);
  for (const { name, node } of chosen) await write(name, [node]);
  await Promise.all([refresh(), WIDE.matches && look(chosen[0].node, false)]);
}

// Another tab, or another program, may have changed the classes while this one was not looked at.
on("model", () => {
  document.addEventListener("visibilitychange", () => {
    if (document.hidden || watching || running) return;
    attempt(async () => {
      if ((await api.classes()).version !== state.version) await refresh();
    });
  });
});
