"""Answers about the nodes of a network: which class, how sure, why, and which node to label next."""
