from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from tunnelbench.analysis.wall_time import wall_time

CREATED = datetime(2026, 1, 1, tzinfo=UTC)


def instances(*times: tuple[float, float | None], superseded: bool = False) -> pl.DataFrame:
    def at(seconds: float | None) -> datetime | None:
        return None if seconds is None else CREATED + timedelta(seconds=seconds)

    schema = {
        "status": pl.String,
        "started": pl.Datetime(time_zone="UTC"),
        "ended": pl.Datetime(time_zone="UTC"),
        "superseded": pl.Boolean,
    }
    rows = [("proven", at(began), at(ended), superseded) for began, ended in times]
    return pl.DataFrame(rows, schema, orient="row")


def states(*seconds: float) -> pl.DataFrame:
    rows = [("before", 1.0), *(("during", one) for one in seconds), ("after", 1.0)]
    return pl.DataFrame(rows, {"moment": pl.String, "seconds": pl.Float64}, orient="row")


def test_every_second_has_one_place() -> None:
    found = wall_time(CREATED, instances((10, 30), (35, 60)), states(8, 9, 10), traffic=20)
    assert found is not None
    assert (found.before, found.between_instances) == (10, 5)
    assert found.around_instances == pytest.approx(20 + 25 - 27)
    assert found.around_trials == pytest.approx(7)
    assert found.total == pytest.approx(60)
    assert found.not_measuring == pytest.approx(1 - 20 / 50)


def test_nobody_knows_how_long_a_pause_was() -> None:
    assert wall_time(CREATED, instances((10, 30), superseded=True), states(8), traffic=5) is None
    assert wall_time(CREATED, instances((10, None)), states(8), traffic=5) is None
    went_on = pl.concat([states(8), states(9)])
    assert wall_time(CREATED, instances((10, 30), (90, 110)), went_on, traffic=5) is None
    assert wall_time(CREATED, instances(), states(), traffic=0) is None
    assert wall_time(CREATED, instances((10, 30)), states(), traffic=0) is None
