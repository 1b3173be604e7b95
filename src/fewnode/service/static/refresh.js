// The model and its classes as the service has them, and all that follows from them.

import * as api from "./api.js";
import { number, plural } from "./dom.js";
import { recall, slot } from "./memory.js";
import { isPending, recallAnswers } from "./queue.js";
import { answered, claimsOf, classNamed, judging, names, on, saidOf, state, tell } from "./state.js";
import { attempt, idle, say } from "./status.js";
import { linked } from "./views.js";

const AHEAD = 5; // questions that are asked for at once
const RECENT = 50; // entries of the journal

// Everything the page starts with.
export async function open() {
  say("Reading the network…");
  const [model, classes] = await Promise.all([api.model(), api.classes()]);
  state.model = model;
  state.options.openSet = model.open_set; // a class that must not claim strangers is what a visitor means by one
  state.options.transductive = model.mode === "transductive";
  recall();
  recallAnswers();
  const asked = linked();
  if (classes.classes.some((c) => c.name === asked.class)) state.active = asked.class;
  place(classes);
  tell("model");
  await refresh();
  performance.mark("ready");
  if (asked.node) state.looking = asked.node;
  tell("opened");
  if (asked.version && asked.version !== state.version)
    say("The classes have changed since this link was made; you see them as they are now.");
}

function place({ version, classes, undo, redo }) {
  state.version = version;
  state.classes = classes;
  if (state.journal && undo !== undefined) Object.assign(state.journal, { undo, redo });
  if (state.classes.some((c) => c.name === state.draft)) state.draft = null;
  if (!names().includes(state.active)) state.active = names()[0] ?? null;
  state.classes.forEach((c) => slot(c.name));
}

// `answer`: the classes, if they are known already. A newer call makes an older one moot.
let latest = 0;
export async function refresh(answer = { version: state.version, classes: state.classes }, placed = () => {}) {
  const mine = ++latest;
  const current = () => mine === latest;
  const found = answer ?? (await api.classes());
  if (!current()) return;
  place(found);
  tell("classes");
  placed();
  const journal = ask(api.journal(RECENT), "journal", current);
  if (!answered()) {
    Object.assign(state, { trust: null, questions: null, judged: null, why: null });
    tell("trust", "questions", "judged", "why", "claims");
    await journal;
    if (state.classes.length) return say("One class alone: this method cannot say which nodes are like it.");
    return say(`${plural(state.model.data.nodes, "node")}, no class yet.`);
  }
  const began = performance.now();
  await Promise.all([
    questions(current),
    ask(api.trust(judging()), "trust", current),
    journal,
    judge(current),
    ...claimed.map((listener) => listener(current)),
  ]);
  if (current()) say(`${summary()} (${Math.round(performance.now() - began)} ms)`);
}

// Views that show what is claimed ask for it themselves, if they are shown.
const claimed = [];
export const onClaims = (listener) => claimed.push(listener);

async function ask(answer, topic, current) {
  const found = await answer;
  if (!current()) return;
  state[topic] = found;
  tell(topic);
}

function summary() {
  const counts = state.classes.map(({ name }) => [name, claimsOf(name)]).filter(([, count]) => count !== null);
  const told = counts.slice(0, 4).map(([name, count]) => `${name} claims ${number(count)}`);
  return `${told.join(", ")}${counts.length > 4 ? ", …" : ""} of ${plural(state.model.data.nodes, "node")}.`;
}

const isOpen = ({ node, class: about }) =>
  about === state.active && !isPending(node) && !state.skipped.has(node) && saidOf(node, about) === null;

// The question that is on the screen stays there until it is answered: nobody says yes to another one by mistake.
export async function questions(current = () => true) {
  if (state.model.suggests === false || !classNamed(state.active)) {
    state.questions = null;
    return tell("questions");
  }
  const about = state.active;
  const exclude = [...state.skipped].slice(-state.model.limits.nodes);
  const [found, now] = await Promise.all([
    api.next({ ...judging(), class: about, count: AHEAD, exclude }),
    likelihood(state.questions?.[0], about),
  ]);
  if (!current() || state.active !== about) return;
  const kept = (state.questions ?? []).slice(0, 1).filter(isOpen);
  if (kept.length && now[kept[0].node] !== undefined) kept[0] = { ...kept[0], probability: now[kept[0].node] };
  const fresh = found.questions.filter((q) => q.node !== kept[0]?.node && isOpen(q));
  state.questions = [...kept, ...fresh];
  tell("questions");
}

// How likely the node of a question is in its class by now: every answer changes that.
async function likelihood(question, about) {
  if (!question || question.class !== about) return {};
  const { classes, results } = await api.classify({ ...judging(), nodes: [question.node], explain: false });
  return { [question.node]: results[0].probabilities[classes.indexOf(about)] };
}

// What the classes say of the node looked at and of its neighbours, and why.
export async function judge(current = () => true) {
  if (!state.node || !answered()) return;
  const nodes = [state.node.node, ...state.node.neighbours.map((n) => n.node)];
  const same = () => current() && state.node?.node === nodes[0];
  const about = state.active;
  const explained = state.model.explains && classNamed(about) ? api.why(nodes[0], about) : Promise.resolve(null);
  explained.catch(() => {}); // told below, after the other's trouble
  const answer = await api.classify({ ...judging(), nodes, explain: false });
  if (!same()) return;
  const of = new Map(answer.results.map((r) => [r.node, r]));
  state.judged = { classes: answer.classes, closed: answer.closed_set, of };
  tell("judged");
  const why = await explained;
  if (!same() || state.active !== about) return;
  state.why = why;
  tell("why");
}

// Another tab, or another program, may have changed the classes while this one was not looked at.
on("opened", () => {
  document.addEventListener("visibilitychange", () => {
    if (document.hidden || !idle()) return;
    attempt(async () => {
      const found = await api.classes();
      if (found.version !== state.version) await refresh(found);
    });
  });
});
