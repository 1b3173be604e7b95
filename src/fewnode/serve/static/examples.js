// What a visitor can try at once.

import { state } from "./state.js";

// Three classes the model was not trained on: two that lie close on the map, so that there is something to learn, and
// the one farthest from both. One node of each, another one at every try.
const SHARE = 0.01; // of the map's nodes, which a class must have
export function examples(tries) {
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
  const pairs = large
    .flatMap((a, i) => large.slice(i + 1).map((b) => [a, b]))
    .sort((p, q) => apart(...p) - apart(...q));
  const [a, b] = pairs[0];
  const rest = large
    .filter((c) => c !== a && c !== b)
    .sort((c, d) => Math.min(apart(d, a), apart(d, b)) - Math.min(apart(c, a), apart(c, b)));
  return [a, b, ...rest.slice(0, 1)].map(({ name, of }) => ({
    name,
    node: map.nodes[of[(7 * tries + Math.floor(of.length / 2)) % of.length]],
  }));
}
