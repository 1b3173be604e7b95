"""How good answers are: scores, intervals, and fixed pools of tasks."""
