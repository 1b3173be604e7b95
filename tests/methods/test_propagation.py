import numpy as np
import scipy.sparse as sp

from fewnode.embedding.attributes import inverse_document_frequency, scale
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


def test_tf_idf_by_hand() -> None:
    x = np.array([[1, 2], [0, 1], [0, 0]], np.float32)
    idf = np.log(np.array([4 / 2, 4 / 3])) + 1
    assert np.allclose(inverse_document_frequency(x), idf)
    expected = np.array([1, 2]) * idf
    for form in (x, sp.csr_array(x)):
        scaled = scale(form, "tf-idf")
        scaled = scaled.toarray() if sp.issparse(scaled) else scaled
        assert np.allclose(scaled[0], expected / np.linalg.norm(expected))
        assert scaled[2].tolist() == [0, 0], "a node without attributes stays one"
