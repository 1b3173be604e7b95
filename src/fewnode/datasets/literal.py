"""One line of a raw dump as a record: strict JSON, or a Python literal as `repr` writes it, and never `eval`.

`ast.literal_eval` reads 5 MB/s. So a literal is rewritten as JSON, string by string, and read at the speed of `json`;
what the rewriting does not cover (None, tuples, rare escapes) still goes to `ast.literal_eval`, with the same result.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from typing import Any, NoReturn

MAX_DEPTH = 100
MAX_AST_BYTES = 1 << 18  # a syntax tree takes hundreds of bytes for a character

_STRING = r""" "[^"\\]*+(?:\\.[^"\\]*+)*+" | '[^'\\]*+(?:\\.[^'\\]*+)*+' """
_STRINGS = re.compile(_STRING, re.VERBOSE | re.DOTALL)
_PIECES = re.compile(rf"""( (?: [^'"]++ | '[^'"\\]*+' )*+ ) ( {_STRING} | ['"] | )""", re.VERBOSE | re.DOTALL)
_ESCAPE = re.compile(r'"|\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.?))', re.DOTALL)
_ODD_ESCAPE = re.compile(r'\\[^nrtbf"]')
_NOT_FINITE = re.compile(r"\b(?:nan|inf|infinity)\b", re.IGNORECASE)


class BadLineError(Exception):
    """A line that cannot be used; its text is the kind that lines like it are counted as."""


class _NotCoveredError(Exception):
    """A literal that needs Python's own parser."""


def parse_record(line: bytes) -> dict[str, Any]:
    """The record in one line without its line end, or `BadLineError` with the kind of damage."""
    text = decode_line(line)
    if text.count("[") + text.count("{") > MAX_DEPTH and _too_deep(text):
        raise BadLineError("nested too deep")
    record = parse_value(text)
    if not isinstance(record, dict):
        raise BadLineError("not a record")
    return record


def decode_line(line: bytes) -> str:
    if not line or line.isspace():
        raise BadLineError("empty line")
    if b"\0" in line:
        raise BadLineError("NUL byte")
    if line.startswith(b"\xef\xbb\xbf"):
        raise BadLineError("byte-order mark")
    try:
        return line.decode().strip()
    except UnicodeDecodeError:
        raise BadLineError("not UTF-8") from None


def parse_value(text: str) -> Any:
    """The value that a JSON text or a Python literal, without white space around it, stands for.

    A text that is both is JSON: `repr` never writes a record whose escapes mean something else in JSON, as its keys
    are in single quotes.
    """
    try:
        if not text.startswith("{'"):
            return _decode_json(text)
    except (ValueError, RecursionError):
        pass
    try:
        return _decode_json(_as_json(text))
    except (ValueError, RecursionError, _NotCoveredError):
        return _evaluate(text)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


_raw_decode = json.JSONDecoder(parse_constant=_refuse_constant).raw_decode


def _decode_json(text: str) -> Any:
    """`json.loads`, less the search for white space that a stripped text does not have."""
    value, end = _raw_decode(text)
    if end != len(text):
        raise ValueError("more than one value")
    return value


def _as_json(literal: str) -> str:
    """The JSON text that means what `literal` means, if it is one. Nothing outside of strings is looked at."""
    if '"' not in literal and "\\" not in literal:
        return literal.replace("'", '"')
    out = []
    for plain, string in _PIECES.findall(literal):
        out.append(plain.replace("'", '"'))
        if len(string) == 1:  # a quote that nothing closes
            raise _NotCoveredError
        if string:
            out.append(_json_string(string))
    return "".join(out)


def _json_string(literal: str) -> str:
    body = literal[1:-1]
    if literal[0] == '"' and "\\" not in body:
        return literal
    if "\\\\" not in body and '\\"' not in body:  # then a backslash begins an escape wherever it stands
        escaped = body.replace("\\'", "'").replace('"', '\\"')
        if not _ODD_ESCAPE.search(escaped):
            return f'"{escaped}"'
    return f'"{_ESCAPE.sub(_json_escape, body)}"'


def _json_escape(match: re.Match[str]) -> str:
    """An escape of Python, or a bare double quote, as JSON has it."""
    byte, unit, char = match.groups()
    if byte:
        return f"\\u00{byte}"
    if unit and not 0xD800 <= int(unit, 16) < 0xE000:  # JSON would join two halves of a pair, Python does not
        return match[0]
    if char == "'":
        return "'"
    if char and char in "\\nrtbf":
        return match[0]
    if match[0] in ('"', '\\"'):
        return '\\"'
    raise _NotCoveredError


def _evaluate(text: str) -> Any:
    """By Python's own parser, or the reason why not."""
    if len(text) <= MAX_AST_BYTES:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # an unknown escape such as \/ is kept as it is, silently
                return ast.literal_eval(text)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            pass
    raise BadLineError(_damage(text))


def _damage(text: str) -> str:
    """What is wrong with a text that neither parser takes."""
    outside = _STRINGS.sub("0", text)
    if _NOT_FINITE.search(outside):
        return "NaN or infinity"
    if re.search(r"\d{4000}", outside):
        return "number too large"
    if "'" in outside or '"' in outside:
        return "wrong quote" if outside.endswith("}") else "cut line"
    if outside.count("{") > outside.count("}") or outside.count("[") > outside.count("]"):
        return "cut line"
    if outside.startswith("{") and not outside.endswith("}"):
        return "trailing garbage"
    return "neither JSON nor a Python literal"


def _too_deep(text: str) -> bool:
    """Whether brackets outside of strings are nested deeper than any record needs; parsers recurse as deep."""
    depth = 0
    for bracket in re.finditer(r"[][{}]", _STRINGS.sub("", text)):
        depth += 1 if bracket[0] in "[{" else -1
        if depth > MAX_DEPTH:
            return True
    return False
