// The page of `fewnode serve`: starts the parts and reads the network.

import "./views.js";
import "./search.js";
import "./selection.js";
import "./classes.js";
import "./judge.js";
import "./node.js";
import "./trust.js";
import "./list.js";
import "./map.js";
import "./new_nodes.js";
import "./history.js";
import { byId, plural } from "./dom.js";
import { on, state } from "./state.js";
import { open } from "./refresh.js";
import { attempt } from "./status.js";

on("model", () => {
  const { data, method_name: method, way, shot, trained } = state.model;
  const how = trained ? `trained ${way}-way ${shot}-shot` : "without training";
  if (state.model.describes)
    document.querySelector("h1").textContent = "Find all nodes of a class, from an example or a sentence.";
  document.title = `fewnode · ${data.name}`;
  byId("dataset").textContent =
    `${data.name} · ${plural(data.nodes, "node")}, ${plural(data.edges, "edge")} · ${method}, ${how}`;
});

attempt(open);
