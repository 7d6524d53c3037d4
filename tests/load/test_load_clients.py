"""The traffic of several clients as one measurement."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunnelbench.load.base import LoadWarning, Measurement
from tunnelbench.load.clients import OF_CLIENTS, all_clients


def client(throughput: float, loss: float = 0.0) -> Measurement:
    return Measurement(
        delivered_bytes=1000,
        delivered_packets=None,
        metrics={"throughput": throughput, "loss": loss},
        warnings=[LoadWarning("late", "The sender was late.", "Send less.")],
    )


def test_one_client_is_as_it_was() -> None:
    alone = client(10)
    assert all_clients([alone]) is alone


def test_rates_are_summed_up_and_the_rest_is_averaged() -> None:
    together = all_clients([client(10, 0.1), client(30, 0.3)])
    assert together.metrics["throughput"] == 40
    assert together.metrics["loss"] == pytest.approx(0.2)
    assert (together.metrics["throughput_least"], together.metrics["throughput_most"]) == (10, 30)
    assert together.metrics["fairness"] == pytest.approx(0.8)
    assert together.delivered_bytes == 2000
    assert together.delivered_packets is None
    assert len(together.warnings) == 1


def test_a_metric_that_one_client_lacks_is_left_out() -> None:
    silent = Measurement(metrics={"throughput": 1.0})
    assert all_clients([client(1), silent]).metrics.keys() == {"throughput", *OF_CLIENTS}


@given(st.lists(st.floats(0.1, 1e4), min_size=2, max_size=16))
def test_fairness_lies_between_one_for_all_and_all_for_one(throughputs: list[float]) -> None:
    fairness = all_clients([client(value) for value in throughputs]).metrics["fairness"]
    assert 1 / len(throughputs) - 1e-9 <= fairness <= 1 + 1e-9
