"""The configuration of kernels from source, made from lines of Debian's."""

from __future__ import annotations

from tunnelbench.lab import kernel_configuration as kernel

DEBIAN = """\
#
# Automatically generated file; DO NOT EDIT.
#
CONFIG_LOCALVERSION=""
CONFIG_LOCALVERSION_AUTO=y
CONFIG_IPV6=m
CONFIG_HOSTFS=y
CONFIG_NR_CPUS=1
CONFIG_SCSI=m
# CONFIG_WLAN is not set
# CONFIG_FTRACE is not set
CONFIG_INET_ESP=m
"""


def test_modules_are_built_in_and_the_rest_stays() -> None:
    lines = kernel.configuration(DEBIAN).splitlines()
    assert {"CONFIG_IPV6=y", "CONFIG_INET_ESP=y", "CONFIG_HOSTFS=y", "CONFIG_NR_CPUS=1"} <= {*lines}
    assert "# CONFIG_FTRACE is not set" in lines
    assert not [line for line in lines if line.endswith("=m")]


def test_each_option_is_named_once_with_our_choice() -> None:
    lines = kernel.configuration(DEBIAN).splitlines()
    assert [line for line in lines if "CONFIG_WLAN" in line] == ["CONFIG_WLAN=y"]
    assert [line for line in lines if "CONFIG_SCSI" in line] == ["CONFIG_SCSI=n"]
    assert [line for line in lines if "LOCALVERSION=" in line] == ['CONFIG_LOCALVERSION="-tunnelbench"']
    assert "CONFIG_LOCALVERSION_AUTO=n" in lines


def test_what_was_added_and_what_could_not_be_is_read_from_the_finished_one() -> None:
    finished = "CONFIG_IPV6=y\nCONFIG_WIREGUARD=y\nCONFIG_OVPN=m\n# CONFIG_SCSI is not set\n"
    assert kernel.added(DEBIAN, finished) == ("OVPN", "WIREGUARD")
    assert kernel.missing(finished, ("WIREGUARD", "WLAN", "CFG80211")) == ("CFG80211", "WLAN")


def test_nothing_is_both_added_and_left_out() -> None:
    assert not {*kernel.ADDED} & {*kernel.LEFT_OUT}
