"""What payload is made of: on its redundancy depends what a tunnel that compresses makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from random import Random as Generator

from tunnelbench.lab.traffic import Content, Pattern, Random, Zeros

_TEXT_BYTES = 64 * 1024
"""Longer than the windows of the compressions in tunnels, so that none of them sees it begin anew."""

_WORDS = (
    "the of and to a in is that for it as was with be by on not he his but at are this have from or had an "
    "they which one you were all her she there would their we him been has when who will no more if out so "
    "up said what its about than into them can only other time new some could these two may first then do "
    "any like my now over such our man me even most made after also did many off before must well back "
    "through years much where your way down should because long each just state those people too how "
    "little good world make very year still see own work men day get here old life both between being under "
    "three never know same last another while us might great go come since against right came take used"
)
"""Frequent words of English prose, the most frequent first."""


def content_of(level: str, files: Mapping[str, bytes]) -> Content:
    """What a study means by a content; `files` has the bytes of those that it names by a path."""
    match level:
        case "random":
            return Random()
        case "zeros":
            return Zeros()
        case "text":
            return Pattern(_text())
        case _:
            return Pattern(files[level])


@cache
def _text() -> bytes:
    """Words drawn as often as in natural language: the n-th with a weight of 1/n (Zipf's law)."""
    words = _WORDS.split()
    weights = [1 / rank for rank in range(1, len(words) + 1)]
    drawn = Generator(1).choices(words, weights, k=_TEXT_BYTES)
    return " ".join(drawn).encode()[:_TEXT_BYTES]
