"""Treatments of a study as the tunnels know them."""

from __future__ import annotations

from tunnelbench.lab.topology import Family
from tunnelbench.study.treatment import Treatment
from tunnelbench.tunnels import all_tunnels
from tunnelbench.tunnels.base import Tunnel, Variant


def tunnel_of(treatment: Treatment) -> Tunnel:
    """The VPN of a treatment."""
    return all_tunnels()[treatment.vpn]


def variant_of(treatment: Treatment) -> Variant:
    """The variant of its VPN that a treatment is."""
    return tunnel_of(treatment).variant(
        treatment.suite, treatment.option_levels(), Family(treatment.outer_ip)
    )
