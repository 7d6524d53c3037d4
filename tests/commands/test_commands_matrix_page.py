"""The page of what works on which image."""

from __future__ import annotations

from typing import Any

from tunnelbench.commands.matrix_page import matrix_page


def found(vpn: str, suite: str, image: str, outcome: str = "works", **changed: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "vpn": vpn,
        "suite": suite,
        "options": "",
        "outer_ip": "ipv4",
        "topology": "site-to-site",
        "image": image,
        "outcome": outcome,
        "reason": None if outcome == "works" else "there is none\nand more",
        "runtime": "namespace" if outcome == "works" else None,
        **changed,
    }


PAGE = matrix_page(
    [
        found("openvpn", "aes-128-gcm", "bullseye", "blocked"),
        found("openvpn", "aes-128-cbc-sha1", "bullseye"),
        found("openvpn", "aes-128-gcm", "bookworm"),
        found("openvpn", "aes-128-gcm", "bookworm", "fails", options="carrier=tcp"),
        found("openvpn", "aes-128-gcm", "bookworm", outer_ip="ipv6"),
        found("open", "none", "bookworm"),
    ]
)


def test_the_overview_counts_by_image() -> None:
    assert "| [`open`](#open) | plain IP | not tried | works |" in PAGE
    assert "| [`openvpn`](#openvpn) | OpenVPN | 1 of 2 | 2 of 3 |" in PAGE


def test_each_vpn_says_what_was_varied_and_what_did_not_work() -> None:
    assert "| suites | 1 of 2 | works |" in PAGE
    assert "| `carrier` | not tried | no |" in PAGE
    assert "| IPv6 between the gateways | not tried | works |" in PAGE
    assert "- `aes-128-gcm` on bullseye: blocked: there is none\n" in PAGE
    assert "- `carrier=tcp` on bookworm: fails: there is none\n" in PAGE


def test_what_cannot_be_had_is_there_with_its_reason() -> None:
    assert "- `l2f`, L2F, Layer Two Forwarding: no implementation" in PAGE
