// What the page knows, what a visitor does, and how it went. Whoever changes the state calls `paint`.

import * as service from "./service.js";

export const state = {
  model: null,
  version: null,
  view: null, // the view that was chosen; null: the one that suits
  classes: [], // as the service has them: {name, support: [{node, beta}], rejected, description, position, remarks}
  draft: null, // a name that waits for its first node
  active: null, // the class that an answer is about
  node: null, // the node that is looked at
  looking: null, // the name of the node that was asked for last
  titled: false, // whether its title takes the focus
  judged: null, // what the classes say of it and its neighbours: {classes, closed, of: node -> result}
  why: null, // why the active class does, or does not, claim it
  questions: null, // the nodes worth asking about, the first one is asked
  order: "doubt", // or "likeliest": which nodes are asked about
  evidence: null, // {nodes: name -> what is known of it, why: of the first question}
  skipped: new Set(), // questions that were set aside, for this tab
  trust: null, // how many each class claims, how many there may be, how much of it is right
  journal: null, // {undo, redo, total, entries}, the newest first
  examples: null, // classes to try the page with
  selection: null, // {title, nodes: [{node, class}], notes}: what a search, a list or a lasso found
  options: { transductive: false, openSet: false, threshold: 0.5 },
  by: "", // who answers
  said: "", // what the page is doing, or has done
  alert: null, // {message, hint, action}: what went wrong
  away: false, // the service does not answer
  waiting: "", // what the service does before it is ready
};

let painter = () => {};
let painting = false;
export const onPaint = (draw) => (painter = draw);
export function paint() {
  if (painting) return;
  painting = true;
  queueMicrotask(() => ((painting = false), painter()));
}

export const names = () => [...state.classes.map((c) => c.name), ...(state.draft === null ? [] : [state.draft])];
export const classNamed = (name) => state.classes.find((c) => c.name === name);
export const classOf = (node) => state.classes.find((c) => c.support.some((s) => s.node === node))?.name ?? null;
export const supportOf = (name) => (classNamed(name)?.support ?? []).map((s) => s.node);
export const descriptionOf = (name) => classNamed(name)?.description ?? null;
export const claimsOf = (name) => state.trust?.classes[name]?.claimed ?? null;
// The class that a neighbour is labelled with or claimed by.
export const classNow = (node) => classOf(node) ?? state.judged?.of.get(node)?.class ?? null;
// What was said of a node and a class: "yes", "no" or null.
export const saidOf = (node, name) =>
  classOf(node) === name ? "yes" : classNamed(name)?.rejected.includes(node) ? "no" : null;
// Whether there is an answer at all: a method that cannot tell strangers has nothing to say of one class alone.
export const answered = () => state.classes.length > (state.model.open_set ? 0 : 1);

// One class alone can only be open: every node is in a closed set of one class.
export function judging() {
  const { transductive, openSet, threshold } = state.options;
  const mode = transductive ? "transductive" : "inductive";
  if (!state.model.open_set) return { mode };
  return openSet || state.classes.length === 1 ? { mode, threshold } : { mode, closed_set: true };
}

// --- what this browser remembers of a network: the colours of its classes, and who answers ---

const LOOKS = 12; // where more are taken, a class that is no more gives its own away
const MOST = 500; // names of classes that are remembered
let slots = new Map();
const place = () => `fewnode ${state.model?.data.name ?? ""}`;

function keep() {
  try {
    localStorage.setItem(place(), JSON.stringify({ slots: [...slots].slice(-MOST), by: state.by }));
  } catch {
    // storage is off: colours hold for this visit
  }
}

function recall() {
  try {
    const { slots: before, by } = JSON.parse(localStorage.getItem(place())) ?? {};
    slots = new Map(Array.isArray(before) ? before : []);
    state.by = typeof by === "string" ? by : "";
  } catch {
    // written by another version of the page, or storage is off
  }
}

export function signed(by) {
  state.by = by.slice(0, 80);
  keep();
}

// A class keeps its colour and shape, also when it, or another one, was deleted and comes again.
export function slot(name) {
  if (name === null || name === undefined) return -1;
  if (!slots.has(name)) {
    const taken = new Set(slots.values());
    let free = 0;
    while (taken.has(free)) free++;
    const gone = free < LOOKS ? undefined : [...slots.keys()].find((other) => !names().includes(other));
    if (gone !== undefined) {
      free = slots.get(gone);
      slots.delete(gone);
    }
    slots.set(name, free);
    keep();
  }
  return slots.get(name);
}

// --- views, and an address that leads back: view, class, node, how nodes are judged, and the list ---

const VIEWS = ["find", "judge", "list", "map", "new", "history"];
const narrow = matchMedia("(max-width: 1000px)");
// Until somebody chooses: the map while there is no class, the next question when there is one.
export const shown = () =>
  state.view ?? (names().length ? "judge" : !state.model?.map || narrow.matches ? "find" : "map");

export function show(view) {
  state.view = view;
  paint();
}

const opened = new URLSearchParams(location.hash.slice(1));
const ofList = [...opened].filter(([key]) => key.startsWith("list-"));
let writeList = (said) => ofList.forEach(([key, value]) => said.append(key, value)); // until the list is there
export const inAddress = (write, read) => (read(opened), (writeList = write));

export function address(view = state.view) {
  const { active, node, options, version, order } = state;
  const said = new URLSearchParams(view ? { view } : {});
  if (active !== null) said.set("class", active);
  if (node) said.set("node", node.node);
  if (order !== "doubt") said.set("order", order);
  said.set("threshold", options.threshold);
  said.set("open", Number(options.openSet));
  said.set("together", Number(options.transductive));
  writeList(said);
  if (version) said.set("state", version);
  return `#${said}`;
}

// What the address asks for; what it does not say, or says wrongly, stays as it is.
function linked(said) {
  const threshold = Number(said.get("threshold"));
  const { open_set: openSet, modes } = state.model;
  if (threshold >= 0.01 && threshold <= 0.99) state.options.threshold = threshold;
  if (said.has("open")) state.options.openSet = openSet && said.get("open") === "1";
  if (said.has("together")) state.options.transductive = modes.length > 1 && said.get("together") === "1";
}

// --- what is going on, and what went wrong ---

let running = 0;
export const idle = () => running === 0;
export const say = (text) => ((state.said = text), paint());
export const warn = (message, hint, action = null) => ((state.alert = { message, hint, action }), paint());
export const calm = () => ((state.alert = null), paint());
const busy = (change) => {
  running += change;
  document.body.classList.toggle("busy", running > 0);
  document.body.setAttribute("aria-busy", String(running > 0));
};

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
    paint();
    busy(-1);
  }
}

async function trouble(error) {
  if (!(error instanceof service.Trouble)) {
    console.error(error);
    const reload = ["Reload", () => location.reload()];
    return warn("Something in this page went wrong.", "Reload it; your classes are kept by the service.", reload);
  }
  say(error.message);
  if (error.kind === "conflict") await attempt(() => refresh());
  if (error.kind === "starting") state.waiting = `${error.message}…`;
  else warn(error.message, error.hint);
  if (error.kind === "gone" || error.kind === "starting") watch(error.kind);
}

// The service is gone, or not ready: ask until it is, then see what it has.
let watching = false;
async function watch(kind) {
  if (watching) return;
  watching = true;
  state.away = kind === "gone";
  do await service.wait(1.2);
  while (!(await service.back()) && (await progress()));
  watching = state.away = false;
  state.waiting = "";
  calm();
  say("The service is back.");
  await attempt(async () => {
    await (state.model ? refresh() : open());
    await sendAnswers();
  });
}

// What the service does before it is ready.
async function progress() {
  const said = await service.version().catch((error) => error);
  if (said.kind === "starting") state.waiting = `${said.message}…`;
  state.away = said.kind === "gone";
  paint();
  return true;
}

service.onBusy((seconds) => say(`The service is busy; asking again in ${seconds} s…`));

// --- what the service has ---

const AHEAD = 5; // questions that are asked for at once

// Everything the page starts with.
export async function open() {
  const said = opened;
  if (VIEWS.includes(said.get("view"))) state.view = said.get("view");
  if (said.get("order") === "likeliest") state.order = "likeliest";
  const found = await service.now({ class: said.get("class"), order: state.order, count: AHEAD });
  state.model = found.model;
  state.options.openSet = found.model.open_set; // a class that must not claim strangers is what a visitor means by one
  linked(said);
  recall();
  service.recallAnswers(state.model.data.name, paint);
  state.active = said.get("class");
  placed(found);
  if (answered() && JSON.stringify(judging()) !== JSON.stringify(usual())) await refresh();
  else follow();
  performance.mark("ready");
  if (said.get("node")) attempt(() => look(said.get("node"), false));
  const moved = said.get("state") && said.get("state") !== state.version;
  say(moved ? "The classes have changed since this link was made; you see them as they are now." : summary());
  attempt(sendAnswers);
}

const usual = () => ({ mode: "inductive", ...(state.model.open_set ? { threshold: 0.5 } : {}) });

function placed(found) {
  const { version, classes, journal, trust, questions, evidence, examples } = found;
  const more = state.model.data.nodes !== found.model.data.nodes;
  Object.assign(state, { model: found.model, version, classes, journal, trust, examples });
  if (classes.some((c) => c.name === state.draft)) state.draft = null;
  if (!names().includes(state.active)) state.active = names()[0] ?? null;
  classes.forEach((c) => slot(c.name));
  if (found.class === state.active) {
    // The question that is on the screen stays there until it is answered: nobody says yes to another one by mistake.
    const first = (state.questions ?? []).slice(0, 1).filter(isOpen);
    const now = questions?.find((q) => q.node === first[0]?.node);
    if (now) first[0].probability = now.probability;
    state.questions = questions && [...first, ...questions.filter((q) => q !== now && isOpen(q))];
    state.evidence = evidence;
  }
  paint();
  return more;
}

const isOpen = ({ node, class: about }) =>
  about === state.active && !service.isPending(node) && !state.skipped.has(node) && saidOf(node, about) === null;

// All that is shown, as it is now. A newer call makes an older one moot.
let latest = 0;
export async function refresh() {
  const mine = ++latest;
  const current = () => mine === latest;
  const { active, order, skipped, questions, model } = state;
  const body = { ...judging(), class: active, order, count: AHEAD, exclude: [...skipped].slice(-model.limits.nodes) };
  const kept = (questions ?? []).filter(isOpen)[0]?.node;
  const began = performance.now();
  const found = await service.now({ ...body, keep: kept });
  if (!current()) return;
  placed(found);
  await follow(current);
  if (current()) say(summary());
  performance.measure("refresh", { start: began });
}

// Views that show what is claimed ask for it themselves, if they are shown.
const followers = [];
export const onClaims = (listener) => followers.push(listener);
const follow = (current = () => true) => Promise.all([judge(current), ...followers.map((listener) => listener(current))]);

function summary() {
  const nodes = state.model.data.nodes.toLocaleString("en");
  if (!state.classes.length) return `${nodes} nodes, no class yet.`;
  if (!answered()) return "One class alone: this method cannot say which nodes are like it.";
  const told = state.classes.slice(0, 4).map((c) => `${c.name} claims ${(claimsOf(c.name) ?? 0).toLocaleString("en")}`);
  return `${told.join(", ")}${state.classes.length > 4 ? ", …" : ""} of ${nodes} nodes.`;
}

// What the classes say of the node looked at and of its neighbours, and why.
async function judge(current = () => true) {
  if (!state.node || !answered()) return;
  const nodes = [state.node.node, ...state.node.neighbours.map((n) => n.node)];
  const about = state.active;
  const explained = state.model.explains && classNamed(about) ? service.why(nodes[0], about) : Promise.resolve(null);
  explained.catch(() => {}); // told below, after the other's trouble
  const answer = await service.classify({ ...judging(), nodes });
  if (!current() || state.node?.node !== nodes[0]) return;
  const of = new Map(answer.results.map((r) => [r.node, r]));
  state.judged = { classes: answer.classes, closed: answer.closed_set, of };
  state.why = await explained;
  paint();
}

// Another tab, or another program, may have changed the classes.
const POLL = 2;
export async function poll() {
  for (;;) {
    await service.wait(POLL);
    if (document.hidden || !idle() || !state.model || watching || service.unsaved()) continue;
    const found = await service.version().catch(() => null);
    if (found && idle() && (found.version !== state.version || found.layout !== state.model.layout)) await attempt(refresh);
  }
}

// --- what a visitor does ---

const TOGETHER = 10_000; // answers that the service takes at once
const signature = () => (state.by ? { by: state.by } : {});

export async function look(name, focus = true) {
  state.looking = name;
  const found = await service.node(name);
  if (state.looking !== name) return;
  Object.assign(state, { node: found, judged: null, why: null, titled: focus });
  if (focus) say(`Looking at ${name}.`);
  paint();
  await judge();
}
export const lookAt = (node) => () => attempt(() => look(node));

export function close() {
  state.node = state.judged = state.why = state.looking = null;
  paint();
}

// The class that answers are about from now on.
export async function activate(name) {
  if (state.active === name) return;
  Object.assign(state, { active: name, questions: null, evidence: null, why: null });
  paint();
  if (classNamed(name)) await refresh();
}

export async function reorder(order) {
  Object.assign(state, { order, questions: null });
  await refresh();
}

// A class needs a node or a sentence to exist; until then its name waits here.
export function draft(name) {
  state.draft = state.active = name;
  state.questions = null;
  say(`${name} waits for its first node: find one and add it.`);
}

export function discard() {
  state.draft = null;
  state.active = names().at(-1) ?? null;
  paint();
}

export function refusal(name) {
  if (name === "") return "A class needs a name.";
  if (name === "." || name === "..") return `A class cannot be called ${name}`;
  if ([...name].length > 200) return "A name has at most 200 characters.";
  return names().includes(name) && name !== state.draft ? `There is a class ${name} already.` : null;
}

// A class as it is from now on: for its first nodes, and for its sentence.
export async function put(name, support, description = descriptionOf(name)) {
  say(`Reading what ${name} is…`);
  await service.put(name, { support, description, ...signature() }, state.version);
  if (state.active !== name) state.questions = null;
  state.active = name;
  await refresh();
}

// `answers`: [{node, class, verdict}], one entry of the journal. `check`: asked as a sample of what is claimed. They are
// kept in this browser at once, and the page goes on while they are sent.
export async function answer(answers, check = false) {
  const question = state.questions?.find((q) => answers.some((one) => one.node === q.node));
  service.keepAnswers({ answers, check, question, ...signature() });
  if (state.questions) state.questions = state.questions.filter((q) => !service.isPending(q.node));
  paint();
  await sendAnswers();
}

const sendAnswers = () => service.sendAnswers(saved, comeBack);

// The classes at once, so that no question is asked twice; all that follows from them is asked for.
function saved({ version, classes }) {
  Object.assign(state, { version, classes });
  return refresh();
}

// A question whose answer was refused is asked again, and the reason is told.
function comeBack(error, { answers, question }) {
  if (question && question.class === state.active)
    state.questions = [question, ...(state.questions ?? []).filter((q) => q.node !== question.node)];
  const [first, ...rest] = answers.map((one) => one.node);
  const which = `${first}${rest.length ? ` and ${rest.length.toLocaleString("en")} more` : ""}`;
  warn(`What was said of ${which} was not kept.`, `${error.message} ${error.hint}`);
}

// One node, one class; a class that only has a name begins with its first node.
// `asked`: the question that it answers; what was said of the node then tells how many members there are.
export async function decide(node, name, verdict, asked = null) {
  if (saidOf(node, name) === verdict) return;
  const words = { yes: `${node} is in ${name}.`, no: `${node} is not in ${name}.` };
  say(words[verdict] ?? `What was said of ${node} is taken back.`);
  if (verdict === "yes" && !classNamed(name)) return put(name, [node], null);
  const last = descriptionOf(name) === null && String(supportOf(name)) === node;
  if (verdict === null && last) return erase(name);
  const before = verdict === "yes" ? classOf(node) : null; // a node is in one class at most
  const moved = before === null ? [] : [{ node, class: before, verdict: null }];
  const said = { node, class: name, verdict, probability: asked?.probability ?? null };
  await answer([...moved, said], asked?.purpose === "check");
}

// Many nodes at once. A new class begins with those that are in it.
export async function decideAll(nodes, name, verdict) {
  if (verdict === "yes" && !classNamed(name)) return put(name, nodes, null);
  const known = new Set(verdict === "yes" ? supportOf(name) : verdict === "no" ? classNamed(name).rejected : []);
  const fresh = nodes.filter((node) => !known.has(node));
  if (fresh.length === 0) return say("That was said of all of them already.");
  say(`${fresh.length.toLocaleString("en")} answers about ${name}…`);
  for (let i = 0; i < fresh.length; i += TOGETHER)
    await answer(fresh.slice(i, i + TOGETHER).map((node) => ({ node, class: name, verdict })));
}

export async function skip(question) {
  state.skipped.add(question.node);
  state.questions = state.questions.filter((q) => q.node !== question.node);
  paint();
  if (state.questions.length < 2) await refresh();
}

export async function erase(name) {
  await service.remove(name, signature(), state.version);
  await refresh();
  say(`${name} is deleted. Undo brings it back.`);
}

// One step back, or forth again, whatever it was.
export async function step(way) {
  await sendAnswers();
  const { what } = await service[way](signature());
  await refresh();
  say(what);
}

export async function judgeBy(option, value) {
  state.options[option] = value;
  await refresh();
}

// Several classes at once, from a list or to try the page: a Map of names to their first nodes.
export async function begin(classes) {
  for (const [name, support] of classes)
    if (!names().includes(name))
      state.version = (await service.put(name, { support, description: null, ...signature() }, state.version)).version;
  await refresh();
}

export async function save(file, how = judging()) {
  say(`Writing ${file}…`);
  download(await service.file(file, how), file);
}

export function download(blob, file) {
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: file });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  say(`${file} is in your downloads.`);
}
