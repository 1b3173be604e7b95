"""Ways to compare methods beyond tasks of test classes."""
