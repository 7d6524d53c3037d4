"""What fastd said in real labs, and which suite that means."""

from __future__ import annotations

import pytest

from tunnelbench.tunnels.base import ReadBack
from tunnelbench.tunnels.fastd import TUNNEL, read_log

SAID = """\
2026-11-21 15:48:17 +0000 --- Info: fastd v22 starting
2026-11-21 15:48:17 +0000 --- Info: bound to 192.168.0.1:10000
2026-11-21 15:48:17 +0000 --- Verbose: sending handshake to <gw2>[192.168.0.2:10000]...
2026-11-21 15:48:17 +0000 --- Verbose: received handshake response from <gw2>[192.168.0.2:10000]
2026-11-21 15:48:17 +0000 --- Verbose: 192.168.0.2:10000 authenticated as <gw2>
2026-11-21 15:48:17 +0000 --- Info: connection with <gw2> established.
2026-11-21 15:48:17 +0000 --- Verbose: new session with <gw2> established using method `salsa2012+umac'.
"""


def test_the_suite_is_that_of_the_session() -> None:
    read = read_log(SAID)
    assert read.suite == "salsa2012-umac"
    assert read.text == "new session with <gw2> established using method `salsa2012+umac'"
    assert read_log(SAID + SAID.replace("salsa2012+umac", "null@l2tp")).suite == "null-l2tp"


@pytest.mark.parametrize("said", ["", SAID.replace("new session", "old session")])
def test_without_a_session_there_is_no_suite(said: str) -> None:
    assert read_log(said) == ReadBack(None, "")


def test_a_method_that_is_no_suite_is_none() -> None:
    assert read_log(SAID.replace("salsa2012+umac", "xsalsa20-poly1305")).suite is None


def test_what_is_called_null_does_not_encrypt() -> None:
    plain = {suite.name for suite in TUNNEL.suites.values() if not suite.encrypts}
    assert plain == {"null", "null-l2tp", "null-umac", "null-gmac"}
