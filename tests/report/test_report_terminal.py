"""What a run prints at its end."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

from rich.console import Console
from synthetic_campaign import TUNNELS, campaign_record, write_campaign

from tunnelbench.report.collect import collect
from tunnelbench.report.content import Content
from tunnelbench.report.terminal import terminal_report
from tunnelbench.store.read import CampaignData
from tunnelbench.store.write import CampaignStore


def printed(content: Content, width: int = 80) -> str:
    console = Console(width=width, file=StringIO(), force_terminal=False)
    console.print(terminal_report(content))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_it_fits_80_columns_without_cutting_a_tunnel(content: Content) -> None:
    text = printed(content)
    assert max(map(len, text.splitlines())) <= 80
    for tunnel in TUNNELS:
        assert tunnel.tunnel.removesuffix("/none") in text
    assert "\N{HORIZONTAL ELLIPSIS}" not in text


def test_lines_have_speed_ratio_set_up_and_proof(content: Content) -> None:
    (result,) = (result for result in content.sections[0].results if result.tunnel == "gre")
    assert result.throughput is not None
    assert result.throughput.ratio is not None
    (line,) = (line for line in printed(content).splitlines() if line.startswith("gre "))
    words = line.split()
    assert words[1] == f"{result.throughput.median:.0f}"
    assert float(words[2]) / 100 == round(result.throughput.ratio, 3)
    assert words[-1] == "4/4"


def test_tunnels_without_number_have_their_reason(content: Content) -> None:
    text = " ".join(printed(content, 200).split())
    assert "ipsec-manual/null-sha1 refused the probe's marker was readable between the gateways" in text
    assert "openvpn/bf-cbc-sha1 failed openvpn on gw2 didn't come up within 20 s" in text


def test_the_terminal_obeys_no_text_from_data(tmp_path: Path) -> None:
    hostile = "\x1b[2J[bold]loud[/bold]\x07"
    write_campaign(tmp_path, 1, TUNNELS[:1], text={"reason": hostile, "title": hostile})
    with CampaignData(tmp_path) as data:
        text = printed(collect(data))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert text.count("[bold]loud[/bold]") == 2


def test_a_campaign_without_results(tmp_path: Path) -> None:
    CampaignStore.create(tmp_path, campaign_record(), []).close()
    with CampaignData(tmp_path) as data:
        assert printed(collect(data)).strip() == "Invented"
