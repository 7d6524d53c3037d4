"""What strongSwan says of its security associations: `swanctl --list-sas --raw`, parsed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

_TOKEN = re.compile(r"([^\s={}]+)\s*\{|([^\s={}]+)=(\[[^\]]*\]|[^\s{}]*)|(\})")

Words = Mapping[str, "str | Words"]


@dataclass(frozen=True)
class ChildAssociation:
    """A pair of associations that protects packets."""

    words: Mapping[str, str]
    """What strongSwan says of it, by its own names."""

    @property
    def state(self) -> str:
        """`INSTALLED` where it is in use."""
        return self.words["state"]

    @property
    def indices(self) -> frozenset[str]:
        """The security parameter indices of both directions; the same at both ends."""
        return frozenset({self.words["spi-in"], self.words["spi-out"]})


@dataclass(frozen=True)
class IkeAssociation:
    """What the key exchange itself is protected with, and what came of it."""

    words: Mapping[str, str]
    children: Sequence[ChildAssociation]


def read_associations(text: str) -> Sequence[IkeAssociation]:
    """All IKE associations with their children."""
    return [
        association
        for line in text.splitlines()
        if line.startswith("list-sa event")
        for association in _associations(line)
    ]


def installed(associations: Sequence[IkeAssociation]) -> Sequence[ChildAssociation]:
    """The children in use; those that were replaced stay for a few seconds."""
    return [child for parent in associations for child in parent.children if child.state == "INSTALLED"]


def _associations(line: str) -> Iterator[IkeAssociation]:
    for event in _sections(_tree(_TOKEN.finditer(line))):
        for association in _sections(event):
            children = association.get("child-sas", {})
            assert not isinstance(children, str)
            yield IkeAssociation(
                _plain(association), [ChildAssociation(_plain(child)) for child in _sections(children)]
            )


def _tree(tokens: Iterator[re.Match[str]]) -> Words:
    words: dict[str, str | Words] = {}
    for token in tokens:
        section, name, value, end = token.groups()
        if end:
            break
        if section:
            words[section] = _tree(tokens)
        else:
            words[name] = value
    return words


def _sections(words: Words) -> Iterator[Words]:
    return (value for value in words.values() if not isinstance(value, str))


def _plain(words: Words) -> Mapping[str, str]:
    return {name: value for name, value in words.items() if isinstance(value, str)}
