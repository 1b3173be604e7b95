// What the page knows. Parts of the page listen for the topics that concern them.

export const state = {
  model: null,
  version: null,
  view: null, // the view that was chosen; null: the one that suits
  classes: [], // as the service has them: {name, support: [{node, beta}], rejected, description, position, remarks}
  draft: null, // a name that waits for its first node
  active: null, // the class that an answer is about
  node: null, // the node that is looked at
  looking: null, // the name of the node that was asked for last
  judged: null, // what the classes say of it and its neighbours: node -> result
  why: null, // why the active class does, or does not, claim it
  questions: null, // the nodes worth asking about, the first one is asked
  skipped: new Set(), // questions that were set aside, for this tab
  trust: null, // how many each class claims, how many there may be, how much of it is right
  journal: null, // {undo, redo, total, entries}, the newest first
  selection: null, // {title, nodes: [{node, class}], notes}: what a search, a list or a lasso found
  options: { transductive: false, openSet: false, threshold: 0.5 },
  by: "", // who answers
};

const listeners = new Map();

export function on(topics, listener) {
  for (const topic of topics.split(" ")) listeners.set(topic, [...(listeners.get(topic) ?? []), listener]);
}

export function tell(...topics) {
  new Set(topics.flatMap((topic) => listeners.get(topic) ?? [])).forEach((listener) => listener());
}

export const names = () => [...state.classes.map((c) => c.name), ...(state.draft === null ? [] : [state.draft])];
export const classNamed = (name) => state.classes.find((c) => c.name === name);
export const classOf = (node) => state.classes.find((c) => c.support.some((s) => s.node === node))?.name ?? null;
export const supportOf = (name) => (classNamed(name)?.support ?? []).map((s) => s.node);
export const rejectedBy = (name) => classNamed(name)?.rejected ?? [];
export const descriptionOf = (name) => classNamed(name)?.description ?? null;
export const betaOf = (node) => state.classes.flatMap((c) => c.support).find((s) => s.node === node)?.beta ?? null;

// What was said of a node and a class: "yes", "no" or null.
export function saidOf(node, name) {
  if (classOf(node) === name) return "yes";
  return rejectedBy(name).includes(node) ? "no" : null;
}

// How many nodes a class claims.
export const claimsOf = (name) => state.trust?.classes[name]?.claimed ?? null;

// Whether there is an answer at all: a method that cannot tell strangers has nothing to say of one class alone.
export const answered = () => state.classes.length > (state.model.open_set ? 0 : 1);

// One class alone can only be open: every node is in a closed set of one class.
export function judging() {
  const { transductive, openSet, threshold } = state.options;
  const mode = transductive ? "transductive" : "inductive";
  if (!state.model.open_set) return { mode };
  return openSet || state.classes.length === 1 ? { mode, threshold } : { mode, closed_set: true };
}
