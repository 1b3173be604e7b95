"""Downloads, from a TLS server in this process: what arrives is what was published, or it never gets its name.

The server has the authors' files that are at hand, under the ids in expected.toml; where they are not, it has others.
"""

import http.server
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha1
from pathlib import Path

import numpy as np
import pytest

from fewnode.errors import FewnodeError
from fewnode.formats.published import EXPECTED
from fewnode.paper import download as module
from fewnode.paper.download import download

SHARED = Path(__file__).parents[3] / "shared" / "data" / "few_shot_data"
NAME = "amazon-clothing"
NETWORK, MAT = "Amazon_clothing_network", "Amazon_clothing_test.mat"


@dataclass
class Site:
    """What the server has, how it behaves for the next request of each file, and what it was asked."""

    files: dict[str, bytes]
    behaviour: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    base: str = ""
    elsewhere: str = ""


class Handler(http.server.BaseHTTPRequestHandler):
    site: Site

    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2]
        self.site.asked.append((name, self.headers["Range"]))
        behaviour = self.site.behaviour.pop(name, "")
        content = self.site.files.get(name)
        if content is None or behaviour == "broken":
            self.send_error(500 if behaviour else 404)
        elif behaviour.startswith("http"):
            self.send_response(302)
            self.send_header("Location", behaviour)
            self.end_headers()
        elif behaviour == "silent":
            threading.Event().wait(5)
        else:
            self._send(content, behaviour)

    def _send(self, content: bytes, behaviour: str) -> None:
        start = int((self.headers["Range"] or "bytes=0-")[6:-1])
        if start >= len(content):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        if behaviour != "no length":
            length = 10**10 if behaviour == "large" else len(content) - start
            self.send_header("Content-Length", str(length))
        self.end_headers()
        content = content[::-1] if behaviour == "wrong" else content[start:]
        self.wfile.write(content[: len(content) // 2] if behaviour == "cut" else content)

    def log_message(self, *_: object) -> None:
        """Nothing on standard error."""


@pytest.fixture(name="certificate", scope="module")
def _certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 and its key in one file."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("tls")
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", str(folder / "key")]
    subprocess.run(
        [openssl, "req", "-x509", *key, "-days", "2", *subject, "-out", str(folder / "crt")],
        check=True,
        capture_output=True,
    )
    (folder / "both").write_bytes((folder / "key").read_bytes() + (folder / "crt").read_bytes())
    return folder / "both"


@pytest.fixture(name="site")
def _site(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    blobs, files = {}, {}
    for name in (NETWORK, MAT):
        if (SHARED / name).exists():
            files[name], blobs[name] = (SHARED / name).read_bytes(), EXPECTED[NAME].blobs[name]
        else:
            files[name] = np.random.default_rng(len(name)).bytes(300_000)
            blobs[name] = sha1(b"blob 300000\0" + files[name]).hexdigest()  # noqa: S324
    monkeypatch.setattr(module, "EXPECTED", {NAME: EXPECTED[NAME].model_copy(update={"blobs": blobs})})
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    site = Site(files)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate)
    handler = type("SiteHandler", (Handler,), {"site": site})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        server.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients that hang up are the point
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        site.base = f"https://127.0.0.1:{server.server_port}/files"
        site.elsewhere = f"https://127.0.0.1:{server.server_port}/elsewhere/"
        yield site
        server.shutdown()


def test_the_published_files_arrive_and_are_not_fetched_twice(site: Site, tmp_path: Path) -> None:
    steps: list[tuple[str, int, int]] = []
    paths = download(NAME, tmp_path / "new", site.base, lambda *step: steps.append(step))
    assert [path.name for path in paths] == [NETWORK, MAT]
    assert [path.read_bytes() for path in paths] == [site.files[NETWORK], site.files[MAT]]
    for name in (NETWORK, MAT):
        sizes = [(done, total) for file, done, total in steps if file == name]
        assert sizes == sorted(sizes)
        assert sizes[-1] == (len(site.files[name]), len(site.files[name]))
    assert download(NAME, tmp_path / "new", site.base + "/") == paths
    assert len(site.asked) == 2
    assert not list((tmp_path / "new").glob("*.part"))


def test_a_transfer_that_is_cut_short_goes_on_where_it_stopped(site: Site, tmp_path: Path) -> None:
    site.behaviour[MAT] = "cut"
    half = len(site.files[MAT]) // 2
    with pytest.raises(FewnodeError, match=rf"{MAT}: cut short, {half:,} of .* are kept; call again to go on"):
        download(NAME, tmp_path, site.base)
    assert not (tmp_path / MAT).exists()
    assert (tmp_path / f"{MAT}.part").read_bytes() == site.files[MAT][:half]
    download(NAME, tmp_path, site.base)
    assert site.asked[-1] == (MAT, f"bytes={half}-")
    assert (tmp_path / MAT).read_bytes() == site.files[MAT]


def test_wrong_content_is_refused_and_deleted(site: Site, tmp_path: Path) -> None:
    site.behaviour[MAT] = "wrong"
    with pytest.raises(FewnodeError, match=rf"{MAT}: not the published file \(another git blob id\), deleted"):
        download(NAME, tmp_path, site.base)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", NETWORK]


def test_redirects_are_followed_within_tls_only(site: Site, tmp_path: Path) -> None:
    site.behaviour[NETWORK] = site.elsewhere + MAT  # then its content is not that of the network
    with pytest.raises(FewnodeError, match="not the published file"):
        download(NAME, tmp_path, site.base)
    site.behaviour[NETWORK] = site.elsewhere + "copy"
    site.files["copy"] = site.files[NETWORK]
    site.behaviour[MAT] = site.elsewhere.replace("https", "http") + MAT
    with pytest.raises(FewnodeError, match=rf"{MAT}: redirects to http://127\S+, which is not https, refused"):
        download(NAME, tmp_path, site.base)
    assert [name for name, _ in site.asked] == [NETWORK, MAT, NETWORK, "copy", MAT]
    assert not (tmp_path / MAT).exists()


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        ("broken", "the server answers 500"),
        ("large", "larger than 256 MB, refused"),
        ("silent", r"cannot be reached \(.*timed out"),
    ],
)
def test_a_server_that_misbehaves_leaves_the_partial_file_alone(
    site: Site,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    behaviour: str,
    message: str,
) -> None:
    monkeypatch.setattr(module, "TIMEOUT", 1.0)
    (tmp_path / f"{MAT}.part").write_bytes(site.files[MAT][:5000])
    site.behaviour[MAT] = behaviour
    with pytest.raises(FewnodeError, match=f"{MAT}: ({message})"):
        download(NAME, tmp_path, site.base)
    assert (tmp_path / f"{MAT}.part").read_bytes() == site.files[MAT][:5000]
    download(NAME, tmp_path, site.base)
    assert (tmp_path / MAT).read_bytes() == site.files[MAT]


def test_a_stream_without_an_end_is_refused(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site.behaviour[NETWORK] = "no length"
    monkeypatch.setattr(module, "MAX_BYTES", 100_000)
    with pytest.raises(FewnodeError, match="larger than"):
        download(NAME, tmp_path, site.base)
