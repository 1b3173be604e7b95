"""Fetch the files that the paper's authors publish: over verified TLS only, resumed where it stopped, and given their
names only once they are what the authors published.

What is known of each file is its git blob id, the SHA-1 of `blob <size>\\0` and the content. A file that is being
fetched is called `NAME.part`. A transfer that is cut short keeps it, and the next call goes on from there; content
that turns out to be wrong is deleted, as going on from it would never end well.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, TypeAlias
from urllib.parse import quote, urlsplit

from fewnode.datasets.expected import EXPECTED
from fewnode.errors import FewnodeError, closest
from fewnode.machine.files import exclusive, one_line
from fewnode.machine.system import fsync_directory

DEFAULT_BASE = "https://raw.githubusercontent.com/kaize0409/GPN/54ed935/few_shot_data/"
MAX_BYTES = 1 << 28
TIMEOUT = 30.0
"""Seconds without a byte after which a server counts as gone."""

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with a file name, the bytes that are there and the bytes there will be, 0 if the server does not say."""

_CHUNK = 1 << 16
_NETWORK = (OSError, http.client.HTTPException)


def download(
    name: str,
    out: Path,
    base: str = DEFAULT_BASE,
    progress: Progress = lambda name, done, total: None,
    context: ssl.SSLContext | None = None,
) -> list[Path]:
    """Fetch the files of a network of the paper into the folder `out`; those already there are checked, not fetched.

    `base` is where the files are, an https address. `context` says whom to trust, by default what the system trusts.
    """
    known = [each for each, expected in EXPECTED.items() if expected.blobs]
    if name not in known:
        raise FewnodeError(f"{name}: no published files{closest(name, known)}; there are {', '.join(known)}")
    with exclusive(out):
        opener = urllib.request.build_opener(
            urllib.request.HTTPSHandler(context=context or ssl.create_default_context()), _SafeRedirects()
        )
        return [_fetch_checked(opener, base, out / file, blob, progress) for file, blob in EXPECTED[name].blobs.items()]


def blob_id(path: Path) -> str:
    """The id git has for a file's content."""
    with path.open("rb") as file:
        digest = hashlib.sha1(b"blob %d\0" % os.fstat(file.fileno()).st_size, usedforsecurity=False)
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def _fetch_checked(opener: urllib.request.OpenerDirector, base: str, path: Path, blob: str, progress: Progress) -> Path:
    if path.exists():
        if blob_id(path) != blob:
            raise FewnodeError(f"{path}: there already, but not the published file; move it away to fetch it")
        return path
    url = f"{base.rstrip('/')}/{quote(path.name)}"
    part = path.with_name(f"{path.name}.part")
    resumed = part.exists()
    _fetch(opener, url, part, progress)
    if resumed and blob_id(part) != blob:
        part.unlink()  # what was there may be to blame: once more, from the beginning
        _fetch(opener, url, part, progress)
    if blob_id(part) != blob:
        part.unlink()
        raise FewnodeError(f"{url}: not the published file (another git blob id), deleted")
    os.replace(part, path)
    fsync_directory(path.parent)
    return path


def _fetch(opener: urllib.request.OpenerDirector, url: str, part: Path, progress: Progress) -> None:
    """Complete the partial file, from where it ends if the server can do that."""
    _require_https(url)
    done = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "fewnode"})  # noqa: S310
    if done:
        request.add_header("Range", f"bytes={done}-")
    response = _open(opener, request)
    if response is None:
        return
    with response:
        if response.status != http.HTTPStatus.PARTIAL_CONTENT:
            done = 0  # the server sends all of it
        elif _range_start(response) != done:
            raise FewnodeError(f"{url}: the server sends another part than the one asked for")
        _receive(response, url, part, done, progress)


def _open(opener: urllib.request.OpenerDirector, request: urllib.request.Request) -> Any:
    """The response; None if there is nothing after what we have: then that is all, or wrong, which its id will tell."""
    url = request.full_url
    try:
        return opener.open(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and request.has_header("Range"):
            return None
        raise FewnodeError(f"{url}: the server answers {error.code} {error.reason}") from None
    except _NETWORK as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, ssl.SSLCertVerificationError):
            raise FewnodeError(f"{url}: its certificate is not trusted ({reason.verify_message})") from None
        raise FewnodeError(f"{url}: cannot be reached ({one_line(reason or error)})") from None


def _receive(response: Any, url: str, part: Path, done: int, progress: Progress) -> None:
    """Write what comes to the partial file, which keeps what came whatever happens."""
    length = response.headers.get("Content-Length", "")
    total = done + int(length) if length.isdecimal() else 0
    too_large = FewnodeError(f"{url}: larger than {MAX_BYTES >> 20} MB, refused")
    if total > MAX_BYTES:
        raise too_large
    with part.open("ab" if done else "wb") as file:
        try:
            while chunk := _read(response, url, part):
                done += file.write(chunk)
                if done > MAX_BYTES:
                    raise too_large
                progress(part.stem, done, total)
        finally:
            _sync(file)
    if total and done < total:
        raise FewnodeError(f"{url}: cut short, {done:,} of {total:,} bytes; {part} is kept, call again to go on")


def _read(response: Any, url: str, part: Path) -> bytes:
    """The next bytes. Errors of the network become ours here, so that those of the disk do not."""
    try:
        return bytes(response.read(_CHUNK))
    except _NETWORK as error:
        raise FewnodeError(f"{url}: cut short ({one_line(error)}); {part} is kept, call again to go on") from None


def _sync(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _range_start(response: Any) -> int:
    """The first byte of `Content-Range: bytes 100-199/200`; -1 if there is no such header."""
    unit, _, span = response.headers.get("Content-Range", "").partition(" ")
    start = span.partition("-")[0]
    return int(start) if unit == "bytes" and start.isdecimal() else -1


def _require_https(url: str) -> None:
    if urlsplit(url).scheme != "https":
        raise FewnodeError(f"{url}: not an https address, refused")


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follows to other hosts, as their certificates are verified too, but never out of TLS."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        if urlsplit(newurl).scheme != "https":
            fp.close()
            raise FewnodeError(f"{req.full_url}: redirects to {newurl}, which is not https, refused")
        return super().redirect_request(req, fp, code, msg, headers, newurl)
