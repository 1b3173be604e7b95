// The model and its classes as the service has them, and all that follows from them.

import * as api from "./api.js";
import { number, plural } from "./dom.js";
import { recall, remember } from "./memory.js";
import { allKnown, claimsOf, labelled, names, on, slot, state, tell } from "./state.js";
import { attempt, idle, onReturn, say } from "./status.js";

const MAP = 4000;
const BEST = 50;
const SUGGESTIONS = 6;
const PAINTED = 60_000;
const TOGETHER = 4;

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

onReturn(() => (state.model ? refresh() : open()));

// A newer call makes an older one moot.
let latest = 0;
export async function refresh(placed = () => {}) {
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
  placed();
  if (!answers()) {
    Object.assign(state, { claims: null, suggestions: null, progress: null, judged: null, colours: null });
    tell("claims", "suggestions", "progress", "judged", "colours");
    if (state.classes.length) return say("One class alone: this method cannot say which nodes are like it.");
    return say(`${plural(state.model.data.nodes, "node")}, no class yet.`);
  }
  const what = `${plural(state.classes.length, "class")} (${plural(labelled(), "labelled node")})`;
  say(`Asking which of ${number(state.model.data.nodes)} nodes are claimed by ${what}…`);
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

// One class alone can only be open: every node is in a closed set of one class.
export function judging() {
  const { transductive, openSet, threshold } = state.options;
  const mode = transductive ? "transductive" : "inductive";
  if (!state.model.open_set) return { mode };
  return openSet || state.classes.length === 1 ? { mode, threshold } : { mode, closed_set: true };
}

// Whether there is an answer at all: a method that cannot tell strangers has nothing to say of one class alone.
const answers = () => state.classes.length > (state.model.open_set ? 0 : 1);

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
  const counts = state.claims?.classes ?? [];
  return (
    counts.map((name) => `${name} claims ${number(claimsOf(name))}`).join(", ") +
    ` of ${plural(state.model.data.nodes, "node")}.`
  );
}

// Where the support nodes are on the map; those outside its sample are asked for one by one.
async function place(current) {
  if (!state.map) return;
  const missing = state.classes.flatMap((c) => c.support).filter((s) => !state.positions.has(s.node));
  for (let i = 0; i < missing.length; i += TOGETHER)
    for (const found of await Promise.all(missing.slice(i, i + TOGETHER).map((s) => api.node(s.node))))
      state.positions.set(found.node, found.position);
  if (missing.length && current()) tell("places");
}

async function measure(current) {
  const found = await api.progress(judging());
  if (!current()) return;
  state.progress = found;
  remember(found);
  tell("progress");
}

// Where the data knows every class, only nodes of these classes are asked about, so that its labels can answer.
export async function more(current = () => true) {
  const exclude = [...state.answered.keys()].slice(-state.model.limits.nodes);
  await ask(api.suggest({ count: SUGGESTIONS, exclude, known: allKnown() }), "suggestions", current);
}

// What the classes say of the node looked at, and of its neighbours.
export async function judge(current = () => true) {
  if (!state.node || !answers()) return;
  const nodes = [state.node.node, ...state.node.neighbours.map((n) => n.node)];
  const answer = await api.classify({ ...judging(), nodes, explain: true });
  if (!current() || state.node?.node !== nodes[0]) return;
  state.judged = { classes: answer.classes, closed: answer.closed_set, of: new Map(answer.results.map((r) => [r.node, r])) };
  tell("judged");
}

// Another tab, or another program, may have changed the classes while this one was not looked at.
on("model", () => {
  document.addEventListener("visibilitychange", () => {
    if (document.hidden || !idle()) return;
    attempt(async () => {
      if ((await api.classes()).version !== state.version) await refresh();
    });
  });
});
