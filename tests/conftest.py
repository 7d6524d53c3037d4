"""What all tests share."""

from __future__ import annotations

from hypothesis import settings

# A busy machine is no failure: no test judges the time that an example takes.
settings.register_profile("tunnelbench", deadline=None)
settings.load_profile("tunnelbench")
