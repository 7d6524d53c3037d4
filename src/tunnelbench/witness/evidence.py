"""What the witness saw on the wire: kept with every instance, and shown in the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Evidence:
    """What passed between the gateways while the probe with its marker crossed."""

    packets: Mapping[str, int]
    """Packets on the wire by protocol."""
    marker_forward: bool
    """The marker was readable on the wire from host1 to host2."""
    marker_reverse: bool
    """The marker was readable on the wire from host2 to host1."""
    marker_expected: bool
    """True for plain IP and plain encapsulations, whose marker must be readable."""
    suite_asked: str
    suite_read_back: str
    """The suite in use, as the programs or the kernel themselves tell it."""
    first_packets: Sequence[str] = ()
    """The first bytes of the first packets of the tunnel's protocol, in hexadecimal."""
    read_back_text: str = ""
    """The words in which the running implementation told its suite, keys left out."""
    fragmented: int = 0
    """Datagrams in fragments that came back; the marker stood in every fragment."""
    facts_asked: Mapping[str, str] = field(default_factory=dict[str, str])
    """What was asked for besides the suite, such as mode and compression."""
    facts_read_back: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the running implementation says of itself besides the suite."""
    entropy: Mapping[str, float] = field(default_factory=dict[str, float])
    """Entropy of the payload bytes by protocol, bits per byte."""
    wifi_read_back: str = ""
    """What both ends of the lab's hop of Wi-Fi said that it is, when the lab was built; empty without one."""


@dataclass(frozen=True)
class Verdict:
    """Whether the tunnel is proven, why not where it isn't, and the evidence."""

    refusal: str | None
    """Why the tunnel is not believed; None where it is proven."""
    evidence: Evidence

    @property
    def proven(self) -> bool:
        """Whether numbers may be taken."""
        return self.refusal is None
