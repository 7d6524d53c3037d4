"""What `tunnelbench prove` found, as a page for readers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tunnelbench.commands.matrix import Row
from tunnelbench.tunnels import all_tunnels
from tunnelbench.tunnels.unavailable import UNAVAILABLE

_HEADING = """\
# VPNs

<!-- Made by scripts/make-reference from vpns.json, which `make test-matrix` writes. -->

Every VPN, and what of it works on which image, as `tunnelbench prove` found it; `--matrix` tries every suite
and option, and what is not in these tables was not tried. *Works* means: it came up, the witness proved it on
the wire, TCP and UDP (as far as it carries them) went through for a second each, and nothing of it was left
afterwards; the usual suite twice in the same lab, and a third time with one of its programs killed. *Blocked*
is what can't be there, which is known before anything is tried. Each suite and option is varied with all else
at its default.
"""


def matrix_page(rows: Sequence[Row]) -> str:
    """The page in Markdown."""
    by_vpn: dict[str, list[Row]] = {}
    for row in rows:
        by_vpn.setdefault(row["vpn"], []).append(row)
    known = [name for name in all_tunnels() if name in by_vpn]
    return "\n".join(
        [
            _HEADING,
            *_overview(known, by_vpn),
            *(line for name in known for line in _section(name, by_vpn[name])),
            "## What can't be had at all\n",
            *(f"- `{name}`, {one.title}: {one.reason}." for name, one in UNAVAILABLE.items()),
            "",
        ]
    )


def _overview(names: Iterable[str], by_vpn: Mapping[str, Sequence[Row]]) -> Iterable[str]:
    images = _images(row for rows in by_vpn.values() for row in rows)
    yield f"| VPN | | {' | '.join(images)} |"
    yield f"|---|---|{'---|' * len(images)}"
    for name in names:
        cells = [_count([row for row in by_vpn[name] if row["image"] == image]) for image in images]
        yield f"| [`{name}`](#{name}) | {all_tunnels()[name].title} | {' | '.join(cells)} |"
    yield ""


def _count(rows: Sequence[Row]) -> str:
    if not rows:
        return "not tried"
    working = sum(row["outcome"] == "works" for row in rows)
    if working == len(rows):
        return "works" if len(rows) == 1 else f"all {working} work"
    return "no" if not working else f"{working} of {len(rows)}"


def _section(name: str, rows: Sequence[Row]) -> Iterable[str]:
    tunnel = all_tunnels()[name]
    yield f"## {name}\n"
    yield f"{tunnel.title}. Gateways ran as {_runtimes(rows)}.\n"
    images = _images(rows)
    yield f"| tried | {' | '.join(images)} |"
    yield f"|---|{'---|' * len(images)}"
    for kind, chosen in _kinds(rows).items():
        cells = [_count([row for row in chosen if row["image"] == image]) for image in images]
        yield f"| {kind} | {' | '.join(cells)} |"
    yield ""
    reasons: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        if row["outcome"] != "works":
            told = reasons.setdefault(f"{row['outcome']}: {_one_line(row['reason'])}", {})
            told.setdefault(row["image"], []).append(_what(row))
    for reason, where in reasons.items():
        places = "; ".join(f"{', '.join(what)} on {image}" for image, what in where.items())
        yield f"- {places}: {reason}"
    yield ""


def _kinds(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows by what is varied in them."""
    kinds: dict[str, list[Row]] = {}
    for row in rows:
        if row["options"]:
            kind = f"`{row['options'].partition('=')[0]}`"
        elif row["topology"] != "site-to-site":
            kind = row["topology"]
        elif row["outer_ip"] != all_tunnels()[row["vpn"]].default_outer:
            kind = "IPv6 between the gateways"
        else:
            kind = "suites"
        kinds.setdefault(kind, []).append(row)
    return kinds


def _what(row: Row) -> str:
    """What is varied in a row."""
    topology = "" if row["topology"] == "site-to-site" else row["topology"]
    outer = "" if row["outer_ip"] == "ipv4" else "over IPv6"
    return (
        f"`{row['suite']}`"
        if not (row["options"] or topology or outer)
        else " ".join(
            part for part in (f"`{row['options']}`" if row["options"] else "", topology, outer) if part
        )
    )


def _runtimes(rows: Iterable[Row]) -> str:
    written = {"namespace": "namespaces of this machine's kernel", "kernel": "kernels of their own"}
    found = dict.fromkeys(row["runtime"] for row in rows if row["runtime"])
    return " or ".join(written[runtime] for runtime in found) or "nothing, since it is blocked"


def _images(rows: Iterable[Row]) -> list[str]:
    return list(dict.fromkeys(row["image"] for row in rows))


def _one_line(reason: str) -> str:
    first = reason.strip().splitlines()[0]
    return first.replace("|", "/")
