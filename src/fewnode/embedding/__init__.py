"""From a graph to a vector z for each node: views, diffusion in tiles, and who works on them. Labels are not needed."""
