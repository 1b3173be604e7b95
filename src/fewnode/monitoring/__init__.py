"""How far a training is, and who else is told of it."""
