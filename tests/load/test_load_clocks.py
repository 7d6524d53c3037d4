from __future__ import annotations

from fake_traffic_node import FakeTrafficNode
from hypothesis import given
from hypothesis import strategies as st

from tunnelbench.load.engine.clocks import ClockOffset, clock_offset

SHORT = st.integers(0, 10_000_000)


@given(st.integers(-(10**12), 10**12), SHORT, SHORT)
def test_the_true_offset_is_within_the_uncertainty(offset: int, there: int, back: int) -> None:
    found = ClockOffset.from_look(0, offset + there, there + back)
    assert abs(found.offset - offset) <= max(found.uncertainty, there + back)
    if found.uncertainty > 0:
        assert abs(found.offset - offset) <= found.uncertainty


@given(SHORT, SHORT)
def test_one_clock_has_no_offset(there: int, back: int) -> None:
    assert ClockOffset.from_look(0, there, there + back) == ClockOffset(0, 0)


async def test_the_tightest_look_counts() -> None:
    one = FakeTrafficNode(times=[0, 900, 1_000, 1_010, 2_000, 2_800, 3_000, 3_900, 4_000, 4_900])
    other = FakeTrafficNode(times=[7_777, 500_005])
    assert await clock_offset(one, other) == ClockOffset(499_000, 5)
