"""Where in a TOML text each key and value stands, since `tomllib` keeps no positions.

The text has been parsed by `tomllib` already, so this scanner only follows the structure (TOML 1.0.0) and
checks nothing.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass

KeyPath = tuple[str | int, ...]
"""Keys of tables and indices of arrays from the root, such as `("factors", "mtu", 0)`."""

_TOKEN = re.compile(
    r'''
    (?P<blank>[ \t]+|\#[^\n]*)
    | (?P<newline>\r?\n)
    | (?P<string>"""(?:\\.|[^\\])*?"""(?!") | \'\'\'.*?\'\'\'(?!\') | "(?:\\.|[^"\\])*" | '[^']*')
    | (?P<mark>[\[\]{}=,.])
    | (?P<bare>[^\s\[\]{}=,."'\#]+)
    ''',
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    line: int


def locate(text: str) -> dict[KeyPath, int]:
    """The line, counted from 1, of every table, key and array element of a valid TOML text."""
    return _Scanner(text).document()


def line_of(path: KeyPath, lines: dict[KeyPath, int]) -> tuple[KeyPath, int]:
    """The longest part of a path that stands in the text, and its line (1 for the root)."""
    while path and path not in lines:
        path = path[:-1]
    return path, lines.get(path, 1)


def _tokens(text: str) -> Iterator[_Token]:
    line = 1
    for match in _TOKEN.finditer(text):
        if match.lastgroup != "blank":
            yield _Token(match.lastgroup or "", match[0], line)
        line += match[0].count("\n")


class _Scanner:
    """Recursive descent over the tokens; every method starts at the token it is named after."""

    def __init__(self, text: str) -> None:
        self._tokens = [*_tokens(text), _Token("end", "", 0)]
        self._next = 0
        self._lines: dict[KeyPath, int] = {}
        self._array_lengths: dict[KeyPath, int] = {}

    def document(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        while self._peek().kind != "end":
            if self._peek().kind == "newline":
                self._take()
            elif self._peek().text == "[":
                table = self._header()
            else:
                self._pair(table)
        return self._lines

    def _header(self) -> KeyPath:
        line = self._take().line
        is_array = self._peek().text == "["
        if is_array:
            self._take()
        path: KeyPath = ()
        keys = self._key()
        for depth, key in enumerate(keys, 1):
            path += (key,)
            self._lines.setdefault(path, line)
            if is_array and depth == len(keys):
                self._array_lengths[path] = self._array_lengths.get(path, 0) + 1
            if path in self._array_lengths:
                path += (self._array_lengths[path] - 1,)
                self._lines.setdefault(path, line)
        self._skip("]", "]") if is_array else self._skip("]")
        return path

    def _pair(self, table: KeyPath) -> None:
        line = self._peek().line
        path = table
        for key in self._key():
            path += (key,)
            self._lines.setdefault(path, line)
        self._skip("=")
        self._value(path)

    def _key(self) -> list[str]:
        keys = [self._key_part()]
        while self._peek().text == ".":
            self._take()
            keys.append(self._key_part())
        return keys

    def _key_part(self) -> str:
        token = self._take()
        return tomllib.loads(f"key = {token.text}")["key"] if token.kind == "string" else token.text

    def _value(self, path: KeyPath) -> None:
        if self._peek().text == "[":
            self._array(path)
        elif self._peek().text == "{":
            self._inline_table(path)
        else:
            self._scalar()

    def _array(self, path: KeyPath) -> None:
        index = 0
        self._take()
        while (token := self._peek()).text != "]":
            if token.kind == "newline" or token.text == ",":
                self._take()
                continue
            self._lines[(*path, index)] = token.line
            self._value((*path, index))
            index += 1
        self._take()

    def _inline_table(self, path: KeyPath) -> None:
        self._take()
        while (token := self._peek()).text != "}":
            if token.kind == "newline" or token.text == ",":
                self._take()
            else:
                self._pair(path)
        self._take()

    def _scalar(self) -> None:
        while self._peek().kind not in ("newline", "end") and self._peek().text not in (",", "]", "}"):
            self._take()

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._tokens[self._next]
        self._next += 1
        return token

    def _skip(self, *texts: str) -> None:
        for text in texts:
            token = self._take()
            assert token.text == text, f"line {token.line}: expected {text}, found {token.text}"
