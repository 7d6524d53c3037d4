"""What `tunnelbench overhead` prints, for readers and for programs."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from tunnelbench.cli import app
from tunnelbench.errors import UserError

CLI = CliRunner(env={"COLUMNS": "80"})


def printed(*arguments: str) -> str:
    result = CLI.invoke(app, ["overhead", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_one_tunnel_has_a_table_and_a_picture_to_scale() -> None:
    lines = printed("open", "--payload", "58").splitlines()
    assert "Largest payload in one packet: 1472 bytes (UDP over IPv4, MTU 1500)." in lines
    assert ["wire", "bytes", "100"] in [line.split() for line in lines]
    (bar,) = [line for line in lines if "····" in line]
    # 14, 20, 8 and 58 of 100 bytes in 80 columns, the payload making up for what was rounded
    assert [bar.count(letter) for letter in "abc·"] == [11, 16, 6, 47]
    assert max(map(len, lines)) <= 80


def test_programs_get_every_field() -> None:
    (found,) = json.loads(printed("open", "--payload", "100", "--json", "--ip", "ipv6"))
    assert found["largest_unfragmented_payload_bytes"] == 1452
    (payload,) = found["payloads"]
    assert payload["wire_bytes"] == 14 + 40 + 8 + 100
    (packet,) = payload["packets"]
    assert [field["bytes"] for field in packet["fields"]] == [14, 40, 8, 100]
    assert payload["ceiling_mbit_per_second"] == pytest.approx(1000 * 100 / 162)


def test_the_picture_is_a_drawing_that_stands_alone(tmp_path: Path) -> None:
    file = tmp_path / "packet.svg"
    printed("open", "--payload", "100", "--svg", str(file))
    root = ElementTree.parse(file).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    words = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "UDP header" in words
    assert "payload 100" in words


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope"], "unknown VPN 'nope'"),
        (["open", "--transport", "sctp"], "unknown transport 'sctp'"),
        (["open", "--payload", "12 parsecs"], "12 parsecs"),
        (["open", "--payload", "0"], "no bytes"),
        (["open", "--outer", "ipv7"], "unknown IP version 'ipv7'"),
        (["open", "--outer", "ipv6"], "plain IP has no IPv6 between the gateways"),
    ],
)
def test_a_mistake_is_named(arguments: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        CLI.invoke(app, ["overhead", *arguments], catch_exceptions=False)
