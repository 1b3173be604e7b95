"""Classes as a person gives them: nodes, a sentence, or both."""
