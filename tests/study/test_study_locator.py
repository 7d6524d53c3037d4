"""The lines of keys in TOML, against `tomllib`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from itertools import count
from typing import cast

from hypothesis import given, reject
from hypothesis import strategies as st

from tunnelbench.study.locator import KeyPath, line_of, locate

TEXT = '''\
title = "a" # a comment with = and [brackets]
"quoted key".b = 'lit#eral'

[factors]
mtu = [ # levels
    1500,
    9000, ] # end
text = """
[not.a.table]
fake = 1""\\""" """
day = 1979-05-27 07:32:00
payload = { tcp = [1], udp.sizes = [2,
  3] }

[[finding]]
id = 1
[[finding]]
id = 2
[finding.at]
vpn = """""two quotes"""""
plain = ~~~
fake = 2~~~
last = -1.5e3
'''.replace("~~~", "'''")


def paths(value: object, path: KeyPath = ()) -> Iterator[KeyPath]:
    if path:
        yield path
    if isinstance(value, dict):
        for key, inner in cast(dict[str, object], value).items():
            yield from paths(inner, (*path, key))
    if isinstance(value, list):
        for index, inner in enumerate(cast(list[object], value)):
            yield from paths(inner, (*path, index))


def test_every_form_of_toml() -> None:
    lines = locate(TEXT)
    assert set(lines) == set(paths(tomllib.loads(TEXT)))
    assert lines[("quoted key", "b")] == 2
    assert lines[("factors", "mtu", 1)] == 7
    assert lines[("factors", "day")] == 11
    assert lines[("factors", "payload", "udp", "sizes", 1)] == 13
    assert lines[("finding", 0, "id")] == 16
    assert lines[("finding", 1)] == 17
    assert lines[("finding", 1, "at", "last")] == 23


def test_an_unknown_path_is_found_at_its_nearest_parent() -> None:
    lines = locate(TEXT)
    assert line_of(("factors", "payload", "sctp", 0), lines) == (("factors", "payload"), 12)
    assert line_of(("nothing",), lines) == ((), 1)


# Documents are put together from pieces of text; every @ becomes a different number.
keys: st.SearchStrategy[str] = st.sampled_from(
    ("a", "b-1", "_2", '"q.r"', "'x = #'", '""', '"esc\\"aped"', "'['")
)
leaves = st.sampled_from(
    (
        "@",
        "@",
        "@",
        '"a"',
        "'# no = comment'",
        '"""\n[x]\n= 1"""',
        "'''\n{,'''",
        '"\\"]"',
        "1979-05-27 07:32:00",
    )
)
gaps = st.sampled_from(("", " ", "\n", " # [comment\n  "))


@st.composite
def arrays(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    elements = draw(st.lists(inner, max_size=3))
    return "[" + ",".join(draw(gaps) + element + draw(gaps) for element in elements) + draw(gaps) + "]"


def inline_tables(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.dictionaries(keys, inner, max_size=3).map(
        lambda table: "{ " + ", ".join(f"{key} = {value}" for key, value in table.items()) + " }"
    )


values = st.recursive(leaves, lambda inner: arrays(inner) | inline_tables(inner), max_leaves=6)
dotted_keys = st.lists(keys, min_size=1, max_size=2).map(".".join)
bodies = st.dictionaries(dotted_keys, values, max_size=3).map(
    lambda body: "\n".join(f"{key} = {value}" for key, value in body.items())
)


@st.composite
def documents(draw: st.DrawFn) -> str:
    tables = draw(st.dictionaries(keys, st.booleans(), max_size=3))
    pieces = [draw(bodies)] if not tables else []
    for name, is_array in tables.items():
        header = f"[[ {name} ]]" if is_array else f"[{name}]"
        for _ in range(draw(st.integers(1, 3)) if is_array else 1):
            pieces += [header + draw(st.sampled_from(("", " # [x]"))), draw(bodies), ""]
    numbers = count(100_000)
    return re.sub("@", lambda _: str(next(numbers)), "\n".join(pieces))


@given(documents())
def test_lines_agree_with_tomllib(text: str) -> None:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        reject()  # dotted keys that contradict each other
    lines = locate(text)
    assert set(lines) == set(paths(document))
    written = text.split("\n")
    for path, value in leaf_values(document):
        if isinstance(value, int):
            assert str(value) in written[lines[path] - 1]


def leaf_values(value: object, path: KeyPath = ()) -> Iterator[tuple[KeyPath, object]]:
    if isinstance(value, dict):
        for key, inner in cast(dict[str, object], value).items():
            yield from leaf_values(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(cast(list[object], value)):
            yield from leaf_values(inner, (*path, index))
    else:
        yield path, value
