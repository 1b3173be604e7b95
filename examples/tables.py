"""Two tables to begin with, as you may have them: 2,600 of Debian's packages, and which depends on which.

python examples/tables.py

writes nodes.csv (package, section, words) and edges.csv (from, to) to the current directory. Packages for virtual
private networks have no section in it: that class is the one to be found from a few examples.
"""

import csv

import numpy as np

import fewnode

SECTIONS = ["admin", "comm", "database", "editors", "fonts", "games", "graphics", "hamradio", "httpd", "java"]
SECTIONS += ["mail", "math", "net", "php", "sound", "tex", "vcs", "video", "web", "xfce"]
EACH, NEW = 125, "vpn"

data = fewnode.load("debian")
x, words = data.graph.x, np.array(data.feature_names)
new = np.flatnonzero(x[:, words == NEW].sum(axis=1) > 0)
labelled = np.setdiff1d(np.arange(data.graph.n), new)
sections = [labelled[data.y[labelled] == data.class_names.index(name)] for name in SECTIONS]
by_degree = [nodes[np.argsort(-data.graph.degree[nodes], kind="stable")] for nodes in sections]  # ties: on any machine
chosen = np.concatenate([*(nodes[:EACH] for nodes in by_degree), new])

with open("nodes.csv", "w", newline="") as file:
    table = csv.writer(file)
    table.writerow(["package", "section", "words"])
    for node in sorted(chosen):
        section = "" if node in new else data.class_names[data.y[node]]
        table.writerow([data.node_names[node], section, " ".join(words[x[[node]].indices])])

with open("edges.csv", "w", newline="") as file:
    table = csv.writer(file)
    table.writerow(["from", "to"])
    pairs = data.graph.adj[chosen][:, chosen].tocoo()
    for i, j in zip(*pairs.coords, strict=True):
        if i < j:
            table.writerow([data.node_names[chosen[i]], data.node_names[chosen[j]]])
