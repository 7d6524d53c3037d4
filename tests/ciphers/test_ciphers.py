"""Costs of ciphers: the arithmetic, the titles, and what OpenSSL and the kernel's timer print."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunnelbench.ciphers.algorithms import cipher, integrity
from tunnelbench.ciphers.cost import Cost, fit
from tunnelbench.ciphers.kernel import read_times
from tunnelbench.ciphers.measure import Suite, parts
from tunnelbench.ciphers.openssl import read_speed
from tunnelbench.tunnels import all_tunnels

costs = st.builds(Cost, st.floats(1, 1e5), st.floats(0.01, 1e3))

SPEED = """\
+DT:AES-128-CBC:1:1400
+R:190025:AES-128-CBC:1.010000
+H:1400
+F:25:AES-128-CBC:263400990.10
"""
"""OpenSSL 3.0.22, of Debian 12."""
SPEED_OF_HASH = """\
+DT:hmac(sha1):1:1400
+R:178146:hmac(sha1):1.010000
+H:1400
+F:9:hmac(sha1):246935049.50
"""


@given(costs, st.lists(st.integers(16, 65_536), min_size=2, max_size=6, unique=True))
def test_times_on_a_line_give_the_line_back(cost: Cost, sizes: list[int]) -> None:
    found = fit({size: cost.ns(size) for size in sizes})
    for size in sizes:
        assert found.ns(size) == pytest.approx(cost.ns(size), rel=1e-6)


def test_what_calls_cost_is_taken_off_and_leaves_nothing_negative() -> None:
    assert Cost(40.0, 7.5).without(Cost(30.0, 0.5)) == Cost(10.0, 7.0)
    assert Cost(29.0, 7.5).without(Cost(30.0, 0.5)) == Cost(0.0, 7.0)


def test_a_rate_is_of_one_processor() -> None:
    assert Cost(0.0, 8.0).mbit_per_second(1400) == pytest.approx(1000.0)
    assert Cost(5600.0, 4.0).mbit_per_second(1400) == pytest.approx(1000.0)
    assert (Cost(1.0, 2.0) + Cost(3.0, 4.0)) == Cost(4.0, 6.0)


def test_one_time_is_no_line() -> None:
    with pytest.raises(ValueError, match="two sizes"):
        fit({1400: 1.0})


def test_a_speed_is_read_from_the_line_of_results() -> None:
    assert read_speed(SPEED) == 263400990.10
    assert read_speed(SPEED_OF_HASH) == 246935049.50
    assert read_speed("") is None


def test_the_kernel_answers_with_times_or_a_complaint() -> None:
    found = read_times({"1000": 2000.0, "2000": 3000.0})
    assert isinstance(found, Cost)
    assert found.ns(3000) == pytest.approx(4000.0)
    assert read_times("No such file or directory") == "No such file or directory"


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("HMAC-SHA-1-96", "sha1"),
        ("HMAC-SHA-1", "sha1"),
        ("HMAC-SHA-256-128", "sha256"),
        ("HMAC-SHA-256", "sha256"),
        ("HMAC-SHA-512-256", "sha512"),
        ("HMAC-MD5-96", "md5"),
    ],
)
def test_what_is_sent_of_a_check_value_does_not_matter(title: str, name: str) -> None:
    found = integrity(title)
    assert found is not None
    assert found.openssl == name


def test_no_encryption_and_aeads_have_nothing_more_to_time() -> None:
    assert cipher("none") is None
    assert integrity("none") is None
    assert integrity("with the cipher") is None
    assert [part.title for part in parts(Suite("AES-128-GCM", "with the cipher", True))] == ["AES-128-GCM"]


def test_what_is_unknown_is_said() -> None:
    with pytest.raises(ValueError, match="Salsa20"):
        cipher("Salsa20")


def test_nearly_all_suites_can_be_timed() -> None:
    """Those that can't are fastd's and tinc's own, and no others may join them unnoticed."""
    untimed: set[str] = set()
    for tunnel in all_tunnels().values():
        for suite in tunnel.suites.values():
            try:
                parts(Suite(suite.encryption, suite.integrity, in_kernel=True))
            except ValueError as error:
                untimed.add(str(error).split()[-2])
    assert untimed <= {"Salsa20", "Salsa20/12", "umac", "gmac", "Poly1305"}
