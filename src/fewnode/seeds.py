"""Random numbers that depend on a key, such as (seed, t), and on nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


def stream(*key: int) -> int:
    """A seed of 63 bits that depends on `key`, such as (seed, t), alone."""
    return int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0] >> np.uint64(1))


@contextmanager
def seeded(*key: int) -> Iterator[None]:
    """Draws of torch inside depend on `key`, such as (seed, t), alone; the caller's stream is left as it was.

    `torch.manual_seed` would do, but without a GPU it keeps a stack trace of every call for later.
    """
    import torch

    cuda = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else range(0)
    with torch.random.fork_rng(cuda):
        for generator in (torch.default_generator, *(torch.cuda.default_generators[i] for i in cuda)):
            generator.manual_seed(stream(*key))
        yield
