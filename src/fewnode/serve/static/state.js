// What the page knows. Parts of the page listen for the topics that concern them.

export const state = {
  model: null,
  map: null, // the sample of nodes that the map shows
  positions: new Map(), // node -> [x, y], wherever an answer told it
  version: null,
  classes: [], // as the service has them: {name, support: [{node, beta}], description, position, remarks}
  draft: null, // a name that waits for its first node
  active: null, // the class that a click adds to
  node: null, // the node that is looked at
  looking: null, // the name of the node that was asked for last
  judged: null, // what the classes say of it and its neighbours: node -> result
  claims: null, // the answer about all nodes
  colours: null, // the classes of the map's nodes
  suggestions: null,
  answered: new Map(), // nodes that were set aside, for this tab
  progress: null,
  history: [], // {labelled, right, found}
  options: { transductive: false, openSet: false, threshold: 0.5 },
};

const listeners = new Map();

export function on(topics, listener) {
  for (const topic of topics.split(" ")) listeners.set(topic, [...(listeners.get(topic) ?? []), listener]);
}

export function tell(...topics) {
  new Set(topics.flatMap((topic) => listeners.get(topic) ?? [])).forEach((listener) => listener());
}

// A class keeps its colour while it is there, whatever happens to the others.
const slots = new Map();
export function slot(name) {
  if (name === null || name === undefined) return -1;
  if (!slots.has(name)) {
    const present = new Set(names());
    for (const other of slots.keys()) if (!present.has(other)) slots.delete(other);
    const taken = new Set(slots.values());
    let free = 0;
    while (taken.has(free)) free++;
    slots.set(name, free);
  }
  return slots.get(name);
}

export const names = () => [...state.classes.map((c) => c.name), ...(state.draft === null ? [] : [state.draft])];
export const classNamed = (name) => state.classes.find((c) => c.name === name);
export const classOf = (node) => state.classes.find((c) => c.support.some((s) => s.node === node))?.name ?? null;
export const supportOf = (name) => (classNamed(name)?.support ?? []).map((s) => s.node);
export const descriptionOf = (name) => classNamed(name)?.description ?? null;
export const betaOf = (node) => state.classes.flatMap((c) => c.support).find((s) => s.node === node)?.beta ?? null;
export const labelled = () => state.classes.reduce((sum, c) => sum + c.support.length, 0);

// How many nodes a class claims beside those it was given.
export const claimsOf = (name) => (state.claims?.counts[name] ?? 0) - supportOf(name).length;

// Whether the data has a class of the name of each.
export function allKnown() {
  const told = new Set(Object.values(state.model.classes).flat());
  return state.classes.length > 1 && state.classes.every((c) => told.has(c.name));
}

// Of one answered node: the class that wins, how sure that is, and its share among the classes, whether or not the
// node is in any of them.
export function verdict(result, among) {
  const { class: name, probabilities, probability } = result;
  const best = name === null ? probabilities.indexOf(Math.max(...probabilities)) : among.indexOf(name);
  const sum = probabilities.reduce((total, p) => total + p, 0) || 1;
  return { name, probability, share: probabilities[best] / sum };
}
