"""The paper's evaluation (section 5), and anybody's own: a grid of cells, each run once and kept."""
