"""UDP at a fixed rate: compared by delay, loss and processor time, never by a throughput that all share."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from synthetic_campaign import (
    FIXED_RATE,
    STARTED,
    TCP,
    TUNNELS,
    UDP,
    begin,
    campaign_record,
    evidence_of,
    write_campaign,
)

from tunnelbench.report.answers import comparisons, headline_sections
from tunnelbench.report.as_json import report_json
from tunnelbench.report.collect import collect
from tunnelbench.report.columns import columns_for, groups_of
from tunnelbench.report.content import Content, Section
from tunnelbench.report.html import render
from tunnelbench.report.illustrations import Illustrations, illustrate
from tunnelbench.report.terminal import terminal_report
from tunnelbench.store.model import TrialRecord
from tunnelbench.store.read import CampaignData
from tunnelbench.store.write import CampaignStore
from tunnelbench.study.cells import Cell, Treatment
from tunnelbench.study.quantity import SendingRate

OPEN = Treatment(vpn="open", suite="none", gateway_os="bookworm", host_os="bookworm", mtu=1500)
FAST = Treatment(vpn="ipsec-manual", suite="aes128-gcm", gateway_os="bookworm", host_os="bookworm", mtu=1500)
SLOW = FAST.model_copy(update={"suite": "3des-sha1"})


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign with TCP, and with UDP at a fixed rate."""
    return write_campaign(tmp_path_factory.mktemp("fixed-rate"), points=(TCP, FIXED_RATE))


@pytest.fixture(scope="module")
def content(campaign: Path) -> Content:
    """What its report says."""
    return collected(campaign)


def collected(directory: Path) -> Content:
    with CampaignData(directory) as data:
        return collect(data)


def printed(content: Content) -> str:
    console = Console(width=80, file=StringIO(), force_terminal=False)
    console.print(terminal_report(content))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def page_text(content: Content) -> str:
    return " ".join(render(content, Illustrations()).split())


def udp_section(content: Content) -> Section:
    return next(section for section in content.sections if section.point.transport == "udp")


def write(directory: Path, trials: dict[Treatment, list[dict[str, float] | None]]) -> Content:
    """Write one trial per treatment and round at the fixed rate with these metrics; None is a void trial."""
    cells = [Cell(treatment=treatment, point=FIXED_RATE) for treatment in trials]
    costs = {node: {"total": 0.25} for node in ("gw1", "gw2")} | {"machine": {"total": 1.5}}
    with CampaignStore.create(directory, campaign_record(), cells) as store:
        for treatment, rounds in trials.items():
            for number, metrics in enumerate(rounds, 1):
                instance = begin(store, number, treatment, "kernel")
                store.prove(instance, evidence_of(treatment, encrypted=treatment is not OPEN), 100.0)
                trial = (
                    TrialRecord(
                        0, FIXED_RATE, STARTED, 1.0, status="void", reason="none of 5770 datagrams arrived"
                    )
                    if metrics is None
                    else TrialRecord(0, FIXED_RATE, STARTED, 1.0, metrics=metrics, node_costs=costs)
                )
                store.add_trial(instance, trial)
                store.end_instance(instance, "proven")
        store.finish("finished", "done")
    return collected(directory)


def delay(p50: float, p99: float, loss: float = 0.0) -> dict[str, float]:
    return {
        "throughput": 30.0 * (1 - loss),
        "offered": 30.0,
        "loss": loss,
        "latency_p50": p50,
        "latency_p99": p99,
    }


def test_the_least_delay_comes_first(content: Content) -> None:
    results = udp_section(content).results
    order = [(result.runtime != "namespace", result.delay.median) for result in results if result.delay]
    assert order == sorted(order)
    assert len(order) == len(results)


def test_the_answer_is_about_delay_loss_and_cost(tmp_path: Path) -> None:
    content = write(
        tmp_path,
        {OPEN: [delay(0.05, 0.4)], FAST: [delay(0.12, 0.9)], SLOW: [delay(0.3, 2.0, 0.2)]},
    )
    (comparison,) = comparisons(content)
    assert comparison.question == "delay"
    assert comparison.best.treatment == FAST
    assert comparison.worst is not None
    assert comparison.worst.treatment == SLOW
    assert comparison.plain is not None
    assert comparison.plain.treatment == OPEN
    assert [result.treatment for result in comparison.lossy] == [SLOW]
    text = page_text(content)
    assert (
        "UDP at 30 Mbit/s, gateways in User Mode Linux kernels: of the encrypted tunnels "
        "<strong>ipsec-manual/aes128-gcm</strong> adds the least delay, 0.120 ms at the median against "
        "0.050 ms for plain IP, 0.900 ms at the 99th percentile against 0.400 ms, 0 % lost. "
        "<strong>ipsec-manual/3des-sha1</strong> adds the most, 0.300 ms at the median, "
        "2.00 ms at the 99th percentile, 20.0 % lost. "
        "More than 1 % is lost by ipsec-manual/3des-sha1 (20.0 %). "
        "Processor seconds per second of both gateways (and of the whole machine): plain IP 0.50 (1.50), "
        "ipsec-manual/aes128-gcm 0.50 (1.50), ipsec-manual/3des-sha1 0.50 (1.50)."
    ) in text
    assert "fastest" not in text


def test_delays_of_one_tier(tmp_path: Path) -> None:
    content = write(
        tmp_path,
        {
            OPEN: [delay(0.05, 0.4), delay(0.06, 0.5)],
            FAST: [delay(0.12, 0.9), delay(0.14, 0.9)],
            SLOW: [delay(0.13, 2.0), delay(0.15, 2.0)],
        },
    )
    (comparison,) = comparisons(content)
    assert comparison.rivals == ("ipsec-manual/3des-sha1",)
    assert "(50 % interval 0.120 to 0.140)" in page_text(content)


def test_ratios_are_of_the_delay_and_not_of_the_rate(content: Content) -> None:
    for result in udp_section(content).results:
        assert result.throughput is not None
        assert result.throughput.ratio is result.throughput.ratio_low is result.throughput.ratio_high is None
        assert result.metrics["packets_per_second"].ratio is None
        assert result.delay is not None
        assert result.delay.ratio is not None
    for result in content.sections[0].results:
        assert result.throughput is not None
        assert result.throughput.ratio is not None


def test_columns_of_a_fixed_rate(content: Content) -> None:
    columns = columns_for(udp_section(content))
    assert [group.heading for group in groups_of(columns)] == [
        "One-way delay, ms",
        "Ratio of p50 to plain IP",
        "Loss",
        "Gateways",
        "Wire",
        "n",
        "Processor s/s",
        "Received",
        "Set-up",
    ]
    on_demand = [column.group for column in columns if column.is_detail]
    assert on_demand[0] == "Processor s/s"
    assert len(columns) - len(on_demand) <= 10
    groups = [group.heading for group in groups_of(columns_for(content.sections[0]))]
    assert groups[:2] == ["Throughput, Mbit/s", "Ratio to plain IP"]


def test_figures_of_a_fixed_rate(campaign: Path) -> None:
    with CampaignData(campaign) as data:
        drawn = {drawing.name for drawing in illustrate(collect(data)).all}
    slug = "udp-ipv4-1300-30-Mbit_s-forward-engine"
    assert {name for name in drawn if "udp" in name} == {f"latency-{slug}", f"processor-{slug}"}


def test_the_terminal_shows_delay_and_loss_in_80_columns(content: Content) -> None:
    text = printed(content)
    assert max(map(len, text.splitlines())) <= 80
    for tunnel in TUNNELS:
        assert tunnel.tunnel.removesuffix("/none") in text
    (result,) = (it for it in udp_section(content).results if it.tunnel == "ipsec-manual/3des-sha1")
    assert result.delay is not None
    (line,) = (it for it in text.splitlines() if it.startswith("ipsec-manual/3des-sha1 "))
    words = line.split()
    assert float(words[4]) == pytest.approx(result.delay.median, rel=0.01)
    assert float(words[5]) == pytest.approx(result.metrics["latency_p99"].median, rel=0.01)
    assert words[6] == "20.0"


def test_tiny_numbers_stay_narrow(tmp_path: Path) -> None:
    trials: dict[Treatment, list[dict[str, float] | None]] = {
        OPEN: [delay(0.0033, 0.00004, 0.00001)],
        FAST: [delay(1234.5, 5000.0, 0.99)],
    }
    text = printed(write(tmp_path, trials))
    assert "0.003 0.000 <0.01" in text
    assert "1234  5000  99.0" in text


def test_a_trial_in_which_nothing_arrived_is_told(tmp_path: Path) -> None:
    content = write(tmp_path, {OPEN: [delay(0.05, 0.4)], FAST: [None], SLOW: [delay(0.3, 2.0)]})
    (void,) = content.unmeasured
    assert (void.tunnel, void.outcome) == ("ipsec-manual/aes128-gcm", "void")
    assert "none of 5770 datagrams arrived" in " ".join(printed(content).split())
    assert "none of 5770 datagrams arrived" in page_text(content)
    assert [result.treatment for result in udp_section(content).results] == [OPEN, SLOW]


def test_a_load_that_measures_no_delay(tmp_path: Path) -> None:
    content = write(tmp_path, {OPEN: [{"throughput": 30.0, "loss": 0.0}], FAST: [{"throughput": 29.0}]})
    assert comparisons(content) == []
    assert "The delay, by which tunnels are compared at a fixed rate, has not been measured." in page_text(
        content
    )
    assert "ipsec-manual/aes128-gcm" in printed(content)


def test_json_says_what_ranks(content: Content) -> None:
    results = json.loads(report_json(content))["results"]
    for result in results:
        fixed = result["rate"] == "30 Mbit/s"
        assert result["ranked_by"] == ("latency_p50" if fixed else "throughput")
        assert (result["metrics"]["throughput"]["ratio"] is None) == fixed


def test_both_kinds_of_udp_have_their_answer(tmp_path: Path) -> None:
    write_campaign(tmp_path, rounds=1, points=(TCP, UDP, FIXED_RATE))
    content = collected(tmp_path)
    assert [section.point for section in headline_sections(content.sections)] == [TCP, FIXED_RATE, UDP]
    assert max(map(len, printed(content).splitlines())) <= 80
    assert printed(content).count("in runtime kernel") == 2
    assert {comparison.question for comparison in comparisons(content)} == {"delay", "throughput"}


def test_the_highest_rate_is_the_headline(content: Content) -> None:
    section = udp_section(content)
    lower = replace(section, point=section.point.model_copy(update={"rate": SendingRate(1_000_000)}))
    assert headline_sections([lower, section]) == [section]
    assert headline_sections([section, lower]) == [section]
