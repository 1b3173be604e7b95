import numpy as np

from fewnode.episodes import EpisodeSampler
from fewnode.graph import Graph
from fewnode.methods.propagation import Propagation


def test_embedding_by_hand(star: Graph) -> None:
    """Two attributes are fewer than the rank, so nothing is projected: unit rows of Â applied to unit rows of X."""
    data = EpisodeSampler.none()
    method = Propagation(steps=1, scaling="l2", centre=False, distance="cosine").fit(star, data, data)
    z = method.embed(star).z
    unit = star.x / np.linalg.norm(star.x, axis=1, keepdims=True)
    middle, leaf, edge = 1 / 4, 1 / 2, 8**-0.5
    expected = np.array([middle * unit[0] + edge * (unit[1] + unit[2] + unit[3])])
    assert np.allclose(z[0], expected / np.linalg.norm(expected), atol=1e-6)
    expected = leaf * unit[3] + edge * unit[0]
    assert np.allclose(z[3], expected / np.linalg.norm(expected), atol=1e-6)
