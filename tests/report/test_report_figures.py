"""Figures draw what there is to draw, also at the edges."""

from __future__ import annotations

import polars
import pytest

from tunnelbench.report import figures
from tunnelbench.report.drawing import draw


@pytest.mark.parametrize("bounds", [(None, None), (1.0, 3.0), (2.0, 2.0)])
def test_intervals_may_be_missing_or_empty(bounds: tuple[float | None, float | None]) -> None:
    row = {"tunnel": "open", "runtime": "namespace", "encrypted": False}
    low, high = bounds
    throughput = polars.DataFrame([{**row, "median": 2.0, "low": low, "high": high}])
    ratio = polars.DataFrame([{**row, "ratio": 2.0, "ratio_low": low, "ratio_high": high}])
    for chart in (figures.bars(throughput, "Mbit/s"), figures.ratio(ratio, "throughput")):
        svg = draw(chart, "name", "title", "words").svg
        assert ">2.00" in svg
        assert ("to" in svg.split(">2.00")[1][:15]) == (low is not None)


@pytest.mark.parametrize("encrypted", [True, False])
def test_bars_have_the_colour_of_their_legend(encrypted: bool) -> None:
    row = {
        "tunnel": "gre",
        "runtime": "kernel",
        "encrypted": encrypted,
        "median": 2.0,
        "low": 1.0,
        "high": 3.0,
    }
    svg = draw(figures.bars(polars.DataFrame([row]), "Mbit/s"), "name", "title", "words").svg
    blue, orange = svg.count("#0072B2"), svg.count("#E69F00")
    assert (blue, orange) == ((2, 1) if encrypted else (1, 2))


@pytest.mark.parametrize("values", [[0.5], [0.00001, 100000.0], [1.0, 1.0, 1.0]])
def test_delays_of_any_size(values: list[float]) -> None:
    rows = [
        {"tunnel": "open", "runtime": "kernel", "quantile": quantile, "value": value}
        for quantile, value in zip(figures.QUANTILES, values, strict=False)
    ]
    drawing = draw(figures.times(polars.DataFrame(rows), "round trip"), "name", "title", "words")
    assert "NaN" not in drawing.svg
    assert "Gateways in User Mode Linux kernels" in drawing.svg


def test_the_machine_is_marked_and_not_stacked() -> None:
    row = {"tunnel": "open", "runtime": "kernel"}
    nodes = [{**row, "node": "gw1", "value": 0.5}]
    alone = draw(figures.processor(polars.DataFrame(nodes)), "name", "title", "words").svg
    machine = [*nodes, {**row, "node": "machine", "value": 0.9}]
    marked = draw(figures.processor(polars.DataFrame(machine)), "name", "title", "words").svg
    assert "whole machine" in marked
    assert "whole machine" not in alone
    assert marked.count("#0072B2") == alone.count("#0072B2") == 2


def test_the_legend_names_the_nodes_that_there_are() -> None:
    row = {"tunnel": "open", "runtime": "namespace", "value": 0.5}
    rows = [{**row, "node": node} for node in ("clients", "gw", "host")]
    svg = draw(figures.processor(polars.DataFrame(rows)), "name", "title", "words").svg
    for node in ("clients", "gw", "host"):
        assert f">{node}<" in svg
    for node in ("host1", "gw1", "gw2", "host2"):
        assert f">{node}<" not in svg


def test_every_runtime_has_its_panel() -> None:
    rows = [
        {"tunnel": "open", "runtime": runtime, "node": node, "value": 0.5}
        for runtime in ("kernel", "namespace", "machine")
        for node in ("gw1", "gw2")
    ]
    svg = draw(figures.processor(polars.DataFrame(rows)), "name", "title", "words").svg
    for title in ("Gateways in namespaces", "Gateways in User Mode Linux kernels", "Machine"):
        assert f">{title}<" in svg


def test_a_drawing_for_a_page_has_its_own_identifiers_and_words() -> None:
    frame = polars.DataFrame([{"tunnel": "open", "runtime": "kernel", "node": "gw1", "value": 0.5}])
    drawing = draw(figures.processor(frame), "figure-1", "title", 'words with "quotes" & <tags>')
    element = str(drawing.for_page())
    assert 'aria-label="words with &#34;quotes&#34; &amp; &lt;tags&gt;"' in element
    assert ' id="' not in element.replace(' id="figure-1-', "")
