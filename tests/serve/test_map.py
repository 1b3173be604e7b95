"""The map: nodes lie near those that they are most like, and who comes later beside them. Texts and links."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fewnode import FewnodeError, read_tables
from fewnode.formats.directory import load_dataset, save_dataset
from fewnode.graph import Ints
from fewnode.service import map as layout_map
from fewnode.service.map import Picture, by_axes, by_neighbours
from fewnode.vectors import Floats


@pytest.fixture(scope="module")
def z() -> Floats:
    """Thirty groups of forty in sixteen dimensions."""
    rng = np.random.default_rng(0)
    return (rng.normal(size=(30, 16)).repeat(40, axis=0) + 0.3 * rng.normal(size=(1_200, 16))).astype(np.float32)


def nearest(points: Floats, count: int) -> Ints:
    apart = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    np.fill_diagonal(apart, np.inf)
    return np.argsort(apart, axis=1)[:, :count]


def kept(picture: Picture, z: Floats) -> float:
    """Share of the 15 nearest in z among the 30 nearest on the map."""
    unit = z / np.linalg.norm(z, axis=1, keepdims=True)
    pairs = zip(nearest(unit, 15), nearest(picture.xy, 30), strict=True)
    return float(np.mean([np.isin(own, shown).mean() for own, shown in pairs]))


def test_neighbours_stay_neighbours(z: Floats) -> None:
    axes, neighbours = by_axes(z), by_neighbours(z)
    assert kept(neighbours, z) > 0.7 > 0.6 > kept(axes, z)
    for picture in (axes, neighbours):
        assert 0 < picture.xy.min() < picture.xy.max() < 1
        assert np.abs(picture.beside(z[:5] * 3) - picture.xy[:5]).max() < 0.1


def test_of_many_nodes_a_sample_is_laid_out(z: Floats, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout_map, "MAX_LAID_OUT", 600)
    assert kept(by_neighbours(z), z) > 0.7


def test_texts_and_links_are_kept(tmp_path: Path) -> None:
    nodes = {"id": ["a", "b", "c"], "about": ["a mail of spam", "a mail of ham", None]}
    edges = {"source": ["a", "b"], "target": ["b", "c"]}
    data = read_tables(nodes, edges, text="about", min_count=1, link="https://x.org/{id}")
    save_dataset(data, tmp_path / "data")
    assert load_dataset(tmp_path / "data").texts == ("a mail of spam", "a mail of ham", "")
    for link in ("javascript:alert('{id}')", "https://x.org/"):
        with pytest.raises(FewnodeError, match="expected https://, and"):
            read_tables(nodes, edges, link=link)
