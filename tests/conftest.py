"""What all tests share."""

from __future__ import annotations

import pytest
from hypothesis import settings

# A busy machine is no failure: no test judges the time that an example takes.
settings.register_profile("tunnelbench", deadline=None)
settings.load_profile("tunnelbench")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Has a test that sends real packets try once more where it failed, which the summary shows.

    On a machine that others use too, a node may be stopped for longer than a program waits.
    """
    for item in items:
        if item.get_closest_marker("lab") is not None:
            item.add_marker(pytest.mark.flaky(reruns=1))
