"""Exact and fast on a CPU, behind one door (`door.py`). Nothing outside this folder imports numba."""
