"""From a graph to a vector z for each node: views of GPN+, walks, attributes, blocks on disk."""
