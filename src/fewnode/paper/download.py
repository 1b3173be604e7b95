"""Fetch the files that the paper's authors publish: over verified TLS only, resumed where it stopped, and given their
names only once they are what the authors published.

What is known of each file is its git blob id, the SHA-1 of `blob <size>\\0` and the content. A file that is being
fetched is called `NAME.part`. A transfer that is cut short keeps it, and the next call goes on from there; content
that turns out to be wrong is deleted, as going on from it would never end well.
"""

from __future__ import annotations

import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote, urlsplit

from fewnode._system.files import exclusive, fsync_directory, one_line
from fewnode.errors import FewnodeError, closest
from fewnode.formats.published import EXPECTED, blob_id

DEFAULT_BASE = "https://raw.githubusercontent.com/kaize0409/GPN/54ed935/few_shot_data/"
MAX_BYTES = 1 << 28
TIMEOUT = 30.0
"""Seconds without a byte after which a server counts as gone."""

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with a file name, the bytes that are there and the bytes there will be, 0 if the server does not say."""

CHUNK = 1 << 16
NETWORK_ERRORS = (OSError, http.client.HTTPException)


def download(
    name: str, out: Path, base: str = DEFAULT_BASE, progress: Progress = lambda name, done, total: None
) -> list[Path]:
    """Fetch the files of a network of the paper from the https address `base` into the folder `out`.

    Those that are there already are checked and not fetched.
    """
    published = [known for known, expected in EXPECTED.items() if expected.blobs]
    if name not in published:
        raise FewnodeError(f"{name}: no published files{closest(name, published)}; there are {', '.join(published)}")
    opener = urllib.request.build_opener(_SafeRedirects())
    with exclusive(out):
        return [_fetch_checked(opener, base, out / file, blob, progress) for file, blob in EXPECTED[name].blobs.items()]


def _fetch_checked(opener: urllib.request.OpenerDirector, base: str, path: Path, blob: str, progress: Progress) -> Path:
    if path.exists():
        if blob_id(path.read_bytes()) != blob:
            raise FewnodeError(f"{path}: there already, but not the published file; move it away to fetch it")
        return path
    url = f"{base.rstrip('/')}/{quote(path.name)}"
    if urlsplit(url).scheme != "https":
        raise FewnodeError(f"{url}: not an https address, refused")
    part = path.with_name(f"{path.name}.part")
    for _ in range(2 if part.exists() else 1):  # what was there may be to blame: then once more, from the beginning
        _fetch(opener, url, part, progress)
        if blob_id(part.read_bytes()) == blob:
            os.replace(part, path)
            fsync_directory(path.parent)
            return path
        part.unlink()
    raise FewnodeError(f"{url}: not the published file (another git blob id), deleted")


def _fetch(opener: urllib.request.OpenerDirector, url: str, part: Path, progress: Progress) -> None:
    """Complete the partial file, from where it ends if the server can do that. It keeps what came whatever happens."""
    done = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": "fewnode"} | ({"Range": f"bytes={done}-"} if done else {})
    try:
        response = opener.open(urllib.request.Request(url, headers=headers), timeout=TIMEOUT)  # noqa: S310
    except urllib.error.HTTPError as error:
        error.close()
        if done and error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            return  # there is nothing after what we have: that is all, or wrong, which its id will tell
        raise FewnodeError(f"{url}: the server answers {error.code} {error.reason}") from None
    except NETWORK_ERRORS as error:
        raise FewnodeError(f"{url}: cannot be reached ({one_line(getattr(error, 'reason', error))})") from None
    if response.status != HTTPStatus.PARTIAL_CONTENT:
        done = 0  # the server sends all of it
    length = response.headers.get("Content-Length", "")
    total = done + int(length) if length.isdecimal() else 0
    with response, part.open("ab" if done else "wb") as file:
        while True:
            try:
                chunk = response.read(CHUNK)
            except NETWORK_ERRORS as error:  # not those of the disk
                raise FewnodeError(f"{url}: cut short ({one_line(error)}); call again to go on") from None
            if not chunk:
                break
            if max(done + len(chunk), total) > MAX_BYTES:
                raise FewnodeError(f"{url}: larger than {MAX_BYTES >> 20} MB, refused")
            done += file.write(chunk)
            progress(part.stem, done, total)
        file.flush()
        os.fsync(file.fileno())
    if done < total:
        raise FewnodeError(f"{url}: cut short, {done:,} of {total:,} bytes are kept; call again to go on")


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follows to other hosts, as their certificates are verified too, but never out of TLS."""

    def redirect_request(self, req: urllib.request.Request, fp: Any, code: int, *more: Any) -> Any:
        if urlsplit(more[-1]).scheme != "https":
            fp.close()
            raise FewnodeError(f"{req.full_url}: redirects to {more[-1]}, which is not https, refused")
        return super().redirect_request(req, fp, code, *more)
