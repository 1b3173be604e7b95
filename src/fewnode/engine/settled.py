"""Functions whose first call must come from one thread."""

import torch

SETTLED = ("acos", "asin", "atan", "cos", "erf", "exp", "expm1", "log", "log10", "log1p", "log2", "sin", "sqrt", "tanh")
"""Functions that MKL looks up when they are first called. If two threads are first, one of them may compute its share
with a thousandth of the accuracy (github.com/pytorch/pytorch/issues/188792): here each has been called by one thread.
"""
for _dtype in (torch.float32, torch.float64):
    for _name in SETTLED:
        getattr(torch, _name)(torch.full((1,), 0.5, dtype=_dtype))
