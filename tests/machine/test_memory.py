import time
from pathlib import Path

import numpy as np
import pytest

from fewnode._system import memory


@pytest.fixture(autouse=True)
def _unlimited() -> object:
    yield
    memory.keep_within(None)


def test_sizes() -> None:
    assert memory.parse_size("6G") == 6 << 30
    assert memory.parse_size("1536m") == 3 << 29
    assert memory.parse_size(str(1 << 30)) == 1 << 30


def test_what_was_read_of_a_mapped_file_is_let_go(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(64 << 20))
    array = memory.map_file(path)
    before = memory.resident()
    assert array.sum() == 0
    time.sleep(0.1)  # there is no limit
    assert memory.resident() - before > 48 << 20
    memory.keep_within(before)
    until = time.monotonic() + 10
    while memory.resident() - before > 16 << 20 and time.monotonic() < until:
        time.sleep(0.01)
    assert memory.resident() - before < 16 << 20
    assert array.sum() == 0


def test_scattered_rows_of_a_mapped_file_are_read_and_let_go(tmp_path: Path) -> None:
    path, rng = tmp_path / "file", np.random.default_rng(0)
    np.save(path.with_suffix(".npy"), rng.standard_normal((1 << 15, 512)).astype(np.float32))
    whole = memory.map_file(path.with_suffix(".npy"))[128:].view(np.float32).reshape(-1, 512)
    rows = rng.permutation(len(whole))[:5000]
    expected = memory.taken(whole, rows)
    del whole
    mapped = memory.map_file(path.with_suffix(".npy"))[128:].view(np.float32).reshape(-1, 512)
    before = memory.resident()
    memory.keep_within(before)
    assert np.array_equal(memory.taken(mapped, rows), expected)
    assert memory.resident() - before < 24 << 20, "the copy has 10 MB, and the file 64"
