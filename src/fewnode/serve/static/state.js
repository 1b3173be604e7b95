// What the page knows. Parts of the page listen for the topics that concern them.

export const state = {
  model: null,
  map: null, // the sample of nodes that the map shows
  positions: new Map(), // node -> [x, y], wherever an answer told it
  version: null,
  classes: [], // as the service has them: {name, support: [{node, beta}], position}
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
  history: [], // {labelled, accuracy}
  options: { transductive: false, openSet: false },
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
export const classOf = (node) => state.classes.find((c) => c.support.some((s) => s.node === node))?.name ?? null;
export const supportOf = (name) => (state.classes.find((c) => c.name === name)?.support ?? []).map((s) => s.node);
export const betaOf = (node) => state.classes.flatMap((c) => c.support).find((s) => s.node === node)?.beta ?? null;
export const labelled = () => state.classes.reduce((sum, c) => sum + c.support.length, 0);

// Of one answered node: the class that wins and how sure that is.
// Shares are those among the classes; with "none of these" allowed, `familiar` says how likely any class is at all.
export function verdict(result, among) {
  const sum = result.probabilities.reduce((total, p) => total + p, 0) || 1;
  const shares = result.probabilities.map((p) => p / sum);
  const best = result.class === null ? shares.indexOf(Math.max(...shares)) : among.indexOf(result.class);
  const familiar = result.familiar ?? null;
  return { name: result.class, shares, share: shares[best], familiar, probability: shares[best] * (familiar ?? 1) };
}
