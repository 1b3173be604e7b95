"""Edges with weights, kinds and directions become relations of a graph."""
