// What a visitor does: each action tells what it is doing, asks the service, and tells how it went.

import * as api from "./api.js";
import { byId, el, number, plural } from "./dom.js";
import { isPending, keepAnswers, sendAnswers } from "./queue.js";
import { judge, open, questions, refresh } from "./refresh.js";
import { classOf, descriptionOf, judging, names, on, saidOf, state, supportOf, tell } from "./state.js";
import { attempt, onReturn, say, warn } from "./status.js";

const TOGETHER = 10_000; // answers that the service takes at once

export async function look(name, focus = true) {
  if (focus) say(`Looking at ${name}…`);
  state.looking = name;
  const found = await api.node(name);
  if (state.looking !== name) return;
  state.node = found;
  state.judged = state.why = null;
  tell("node");
  if (focus) byId("node-title")?.focus();
  if (focus) say(`${name}: ${plural(found.neighbours_total, "neighbour")}.`);
  await judge();
}

export function close() {
  state.node = state.judged = state.why = state.looking = null;
  tell("node");
}

// The class that answers are about from now on.
export async function activate(name) {
  if (state.active === name) return;
  state.active = name;
  state.questions = null;
  state.why = null;
  tell("active", "questions");
  if (supportOf(name).length || descriptionOf(name) !== null) await refresh();
}

// A class needs a node or a sentence to exist; until then its name waits here.
export function draft(name) {
  state.draft = state.active = name;
  state.questions = null;
  tell("classes", "active", "questions");
  say(`${name} waits for its first node${state.model.describes ? ", or a sentence" : ": find one and add it"}.`);
}

export function discard() {
  state.draft = null;
  state.active = names().at(-1) ?? null;
  tell("classes", "active");
}

export function refusal(name) {
  if (name === "") return "A class needs a name.";
  if (name === "." || name === "..") return `A class cannot be called ${name}`;
  if ([...name].length > 200) return "A name has at most 200 characters.";
  if (names().includes(name)) return `There is a class ${name} already.`;
  return null;
}

// `placed`: what is to be done as soon as the class is on the page.
export async function describe(name, description, placed = () => {}) {
  say(`Reading what ${name} is…`);
  await put(name, supportOf(name), description, placed);
}

// A class as it is from now on: for its first nodes, and for its sentence.
export async function put(name, support, description = descriptionOf(name), placed = () => {}) {
  await api.put(name, { support, description, ...signature() }, state.version);
  state.active = name;
  await refresh(null, placed);
}

const signature = () => (state.by ? { by: state.by } : {});

// --- answers ---

// `answers`: [{node, class, verdict}], one entry of the journal. `check`: asked as a sample of what is claimed. They are
// kept in this browser at once, and the page goes on while they are sent.
export async function answer(answers, check = false) {
  const question = state.questions?.find((q) => answers.some((one) => one.node === q.node));
  keepAnswers({ answers, check, question, ...signature() });
  if (state.questions) {
    state.questions = state.questions.filter((q) => !isPending(q.node));
    tell("questions");
  }
  await send();
}

export const send = () => sendAnswers((found) => refresh(found), comeBack);

// A question whose answer was refused is asked again, and the reason is told.
async function comeBack(error, { answers, question }) {
  if (question && question.class === state.active) {
    state.questions = [question, ...(state.questions ?? []).filter((q) => q.node !== question.node)];
    tell("questions");
  }
  const [first, ...rest] = answers.map((one) => one.node);
  warn(`What was said of ${first}${rest.length ? ` and ${number(rest.length)} more` : ""} was not kept.`, `${error.message} ${error.hint}`);
}

onReturn(async () => {
  await (state.model ? refresh(null) : open());
  await send();
});
on("opened", () => attempt(send));

// One node, one class; a class that only has a name begins with its first node.
export async function decide(node, name, verdict, check = false) {
  if (saidOf(node, name) === verdict) return;
  const words = { yes: `${node} is in ${name}.`, no: `${node} is not in ${name}.` };
  say(words[verdict] ?? `What was said of ${node} is taken back.`);
  if (verdict === "yes" && !state.classes.some((c) => c.name === name)) return put(name, [node], null);
  if (verdict === null && emptied(name, node)) return erase(name);
  const before = verdict === "yes" ? classOf(node) : null; // a node is in one class at most
  const moved = before === null ? [] : [{ node, class: before, verdict: null }];
  await answer([...moved, { node, class: name, verdict }], check);
}

const emptied = (name, node) =>
  descriptionOf(name) === null && supportOf(name).length === 1 && supportOf(name)[0] === node;

// Many nodes at once. A new class begins with those that are in it.
export async function decideAll(nodes, name, verdict) {
  if (verdict === "yes" && !state.classes.some((c) => c.name === name)) {
    say(`Starting ${name} with ${plural(nodes.length, "node")}…`);
    return put(name, nodes, null);
  }
  const fresh = nodes.filter((node) => saidOf(node, name) !== verdict);
  if (fresh.length === 0) return say("That was said of all of them already.");
  say(`${plural(fresh.length, "answer")} about ${name}…`);
  for (let i = 0; i < fresh.length; i += TOGETHER)
    await answer(fresh.slice(i, i + TOGETHER).map((node) => ({ node, class: name, verdict })));
}

export async function skip(question) {
  state.skipped.add(question.node);
  state.questions = state.questions.filter((q) => q.node !== question.node);
  tell("questions");
  if (state.questions.length < 2) await questions();
}

export async function erase(name) {
  say(`Deleting ${name}…`);
  await api.remove(name, signature(), state.version);
  await refresh(null);
  say(`${name} is deleted. Undo brings it back.`);
}

// One step back, or forth again, whatever it was.
export async function step(way) {
  await send();
  const { what } = await api[way](signature());
  await refresh(null);
  say(what);
}

export async function judgeBy(option, value) {
  state.options[option] = value;
  tell("options");
  await refresh();
}

// Classes that the model has never seen, with one central node each.
export async function tryIt(examples) {
  say(`Starting ${examples.map((c) => c.class).join(", ")} with one node each…`);
  for (const { class: name, node } of examples)
    if (classOf(node) === null && !names().includes(name)) {
      const { version } = await api.put(name, { support: [node], description: null }, state.version);
      state.version = version;
    }
  await refresh(null);
}

export async function save(file, how = judging()) {
  say(`Writing ${file}…`);
  download(await api.file(file, how), file);
}

export function download(blob, file) {
  const address = URL.createObjectURL(blob);
  el("a", { href: address, download: file }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
  say(`${file} is in your downloads.`);
}

export const lookAt = (node) => () => attempt(() => look(node));
