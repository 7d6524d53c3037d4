"""A study: what to vary, what to hold fixed and how to measure, as frozen models.

A study is read from TOML once (see `reading`); every quantity is then in the unit that its description names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, cast

from annotated_types import Ge, Gt, Interval
from pydantic import AfterValidator, Field, PrivateAttr, model_validator

from tunnelbench.study.correspondence import Correspondence, Selection, known_selection
from tunnelbench.study.fields import (
    BitRate,
    Bytes,
    ContentLevel,
    Frozen,
    Levels,
    Name,
    PositiveSeconds,
    Ratio,
    Seconds,
    SecondsOrAuto,
    SendingRateLevel,
    SystemsLevel,
    Tables,
)
from tunnelbench.study.quantity import CAPACITY, MAXIMUM, SendingRate
from tunnelbench.study.vocabulary import (
    Background,
    Direction,
    InternetProtocol,
    RuntimeChoice,
    Sending,
    Transport,
)

Topology = Literal["site-to-site", "host-to-host", "remote-access"]
CapacityRule = Literal["conditional", "kth", "rfc2544"]
Stop = Literal["rounds", "published", "interval"]

_LARGEST_DATAGRAM_PAYLOAD = 65_507
"""IPv4's 65 535 bytes less the headers of IP (20) and UDP (8): RFC 791, RFC 768. An ICMP echo has 8 too."""
_LARGEST_WRITE = 16 * 1024 * 1024
_LARGEST_SEGMENT = 32_767
"""The most that Linux takes for TCP_MAXSEG."""


class About(Frozen, frozen=True):
    """What the study is."""

    id: Name
    """Short name: lower-case letters, digits, dots, dashes."""
    title: str
    """One line for headings."""
    question: str
    """The question that the study answers."""
    topology: Topology = "site-to-site"
    """`site-to-site`: host1 - gw1 - gw2 - host2, the tunnel between the gateways.
    `host-to-host`: the tunnel between host1 and host2 themselves.
    `remote-access`: client1, client2 and so on - gw - host, a tunnel from each client to the gateway."""
    runtime: RuntimeChoice = "auto"
    """Where the ends of tunnels run: in namespaces of this machine's kernel, or as kernels of their own."""


class Payloads(Frozen, frozen=True):
    """Payload sizes by transport, since a TCP write and a UDP datagram mean different things."""

    tcp: Levels[Annotated[Bytes, Interval(ge=1, le=_LARGEST_WRITE)]] = (131_072,)
    """Bytes handed to TCP in one write."""
    udp: Levels[Annotated[Bytes, Interval(ge=1, le=_LARGEST_DATAGRAM_PAYLOAD)]] = (1400,)
    """Bytes of payload in one datagram."""
    icmp: Levels[Annotated[Bytes, Interval(ge=1, le=_LARGEST_DATAGRAM_PAYLOAD)]] = (56,)
    """Bytes of data in one ICMP echo request."""
    request: Levels[Annotated[Bytes, Interval(ge=1, le=_LARGEST_DATAGRAM_PAYLOAD)]] = (64,)
    """Bytes of a request, and of its response, in the profiles of requests and responses."""

    @model_validator(mode="before")
    @classmethod
    def _one_list_for_all(cls, value: object) -> object:
        if not isinstance(value, list):
            return value
        return dict.fromkeys(cls.model_fields, cast(list[object], value))


class Rates(Frozen, frozen=True):
    """Sending rates by transport: what is a trickle of datagrams is a flood of echo requests."""

    udp: Levels[SendingRateLevel] = (MAXIMUM,)
    """Rates of datagrams: `max`, payload bits or datagrams per second, bursts (`100 every 10 ms`), or
    `capacity`, the highest rate within a loss goal, which is searched for."""
    icmp: Levels[SendingRateLevel] = (SendingRate(100, "packets/s"),)
    """Rates of echo requests; with `max` each is sent when the one before is answered."""

    @model_validator(mode="before")
    @classmethod
    def _a_list_is_for_udp(cls, value: object) -> object:
        return {"udp": cast(list[object], value)} if isinstance(value, list) else value

    @model_validator(mode="after")
    def _capacity_is_of_udp(self) -> Self:
        if CAPACITY in self.icmp:
            raise ValueError("capacity is searched for with UDP only")
        return self


class Factors(Frozen, frozen=True):
    """What varies: a list of levels for each factor. The study is every combination but those left out."""

    tunnel: Levels[str]
    """`VPN/SUITE OPTION=LEVEL`; the suite may be a glob (`openvpn/*`) and may be left out where the VPN has
    only one; an option may have several levels (`carrier=udp,tcp`) or all (`carrier=*`)."""
    outer_ip: Levels[InternetProtocol] = ("ipv4",)
    """IP versions between the gateways."""
    clients: Levels[Annotated[int, Interval(ge=1, le=64)]] = (1,)
    """Clients that use a tunnel at once, in the topology `remote-access`."""
    gateway_os: Levels[SystemsLevel] = ("bookworm",)
    """Images that the gateways run: the operating system. `bookworm` is for both, `bookworm+trixie` for gw1
    and gw2."""
    host_os: Levels[SystemsLevel] | None = None
    """Images that the hosts run, and the clients of remote access; what the gateways run where not given.
    `bookworm+trixie` is for host1 and host2, or the clients and the host."""
    mtu: Levels[Annotated[int, Interval(ge=68, le=65_535)]] = (1500,)
    """Maximum transmission unit of the links in bytes."""
    transport: Levels[Transport] = ("tcp",)
    """Transport protocols of the measured traffic."""
    ip: Levels[InternetProtocol] = ("ipv4",)
    """IP versions of the measured traffic."""
    profile: Levels[str] = ("constant",)
    """What is sent when: `constant`, `request-response`, `connect-request-response`, or a named profile."""
    payload_bytes: Payloads = Payloads()
    """One list for all, or `{ tcp = [...], udp = [...] }`."""
    rate: Rates = Rates()
    """One list for UDP, or `{ udp = [...], icmp = [...] }`."""
    direction: Levels[Direction] = ("forward",)
    """`forward`: from host1 to host2; `reverse`: from host2 to host1; `both` at the same time."""
    streams: Levels[Annotated[int, Interval(ge=1, le=128)]] = (1,)
    """TCP connections side by side."""
    content: Levels[ContentLevel] = ("random",)
    """What payload is made of: `random`, `zeros`, `text`, or the path of a file beside the study."""
    sending: Levels[Sending] = ("batched",)
    """How datagrams are handed to the system: several in a call, one in a call, or cut up by it."""
    congestion_control: Levels[Name] | None = None
    """TCP congestion controls; the system's own where not given."""
    background: Levels[Background] = ("none",)
    """What fills the path beside the measured traffic: nothing, or one bulk TCP stream, which goes from host1
    to host2 (`tcp`), from host2 to host1 (`tcp-reverse`), or both ways at the same time (`tcp-both`)."""
    load: Levels[Name] = ("engine",)
    """Programs that drive the traffic."""
    leave_out: Tables[Annotated[Selection, AfterValidator(known_selection)]] = ()
    """Combinations that are not to be measured, each by the levels that they have: `{ transport = ["udp"],
    suite = ["3des-sha1"] }`. Plain IP is measured wherever a tunnel is."""


class Socket(Frozen, frozen=True):
    """How sockets of the measured traffic are set; as the system has them where nothing is said."""

    dscp: Annotated[int, Interval(ge=0, le=63)] | None = None
    """Differentiated services code point (RFC 2474)."""
    ttl: Annotated[int, Interval(ge=1, le=255)] | None = None
    """Time to live, or hop limit."""
    dont_fragment: bool = False
    """Whether packets may not be fragmented on their way; TCP's never are, as systems have it."""
    buffer: Annotated[Bytes, Ge(1024)] | None = None
    """Bytes of send and receive buffers."""
    mss: Annotated[int, Interval(ge=88, le=_LARGEST_SEGMENT)] | None = None
    """Largest TCP segment in bytes."""
    no_delay: bool = False
    """Whether TCP sends small segments at once (no Nagle algorithm, RFC 896)."""


class Link(Frozen, frozen=True):
    """The wide-area link, the one that the tunnel crosses, and those of the hosts; perfect where nothing is
    said."""

    rate: BitRate | None = None
    """Bits per second; unlimited where not given."""
    delay: Seconds = 0.0
    """Seconds added in each direction."""
    loss: Ratio = 0.0
    """Ratio of packets dropped in each direction."""
    host_rate: BitRate | None = None
    """Bits per second of the Ethernet between each host and its gateway, or of each client's port, preambles
    and gaps between frames included; unlimited where not given."""
    wifi_rate: BitRate | None = None
    """Bits per second that a hop of 802.11n with WPA2 between host1 and gw1 carries in both directions
    together, the framing of 802.11 included; no such hop where not given."""


class CapacitySearch(Frozen, frozen=True):
    """How the highest rate within a loss goal is searched for."""

    rule: CapacityRule = "conditional"
    """`conditional`: RFC 9971. `kth`: steps upwards until the average loss reaches the goal, as the KTH
    theses have it. `rfc2544`: binary search."""
    loss_goal: Ratio | None = None
    """Loss that a trial may have. Where not given, `conditional` 0.5 %, `kth` 1 %, `rfc2544` none."""
    exceed: Ratio = 0.5
    """With `conditional`: the share of trials at a rate that may lose more."""
    trial: PositiveSeconds | None = None
    """Measured seconds of each trial of the search. Where not given, `conditional` 1 s, `kth` 10 s,
    `rfc2544` 60 s."""
    trials: Annotated[int, Ge(1)] | None = None
    """Trials at a rate that decide about it. Where not given, `conditional` 5, `kth` 10; of `rfc2544` it is
    always 1."""
    width: Annotated[Ratio, Ge(1e-6)] = 0.01
    """How close to the limit `conditional` and `rfc2544` search, as a share of it."""
    step: BitRate = 1_000_000
    """By how much `kth` raises the rate, bits per second."""
    lowest: BitRate = 1_000_000
    """No lower rate is tried, bits per second."""
    highest: BitRate | None = None
    """No higher rate is tried, bits per second. Where not given, it is what the sender reaches at `max`."""
    repeats: Annotated[int, Ge(0)] = 3
    """Further trials that must confirm what was found; where they don't, the next lower rate is tried."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.highest is not None and self.highest <= self.lowest:
            raise ValueError("the highest rate must be above the lowest")
        return self


class Method(Frozen, frozen=True):
    """How to measure."""

    rounds: Annotated[int, Ge(1)] = 10
    """Most rounds; each round brings up every tunnel once."""
    rounds_min: Annotated[int, Ge(1)] = 1
    """Rounds that are finished even when the budget is spent."""
    budget: PositiveSeconds | None = None
    """Seconds for the whole campaign: no round starts that would not fit. Unlimited where not given."""
    stop: Stop = "rounds"
    """What ends the campaign, if neither `rounds` nor `budget` does before.
    `rounds`: nothing else.
    `published`: every cell has 30 instances and a standard deviation below 0.5 % of the mean.
    `interval`: the 95 % interval of every cell's ratio to plain IP is within the goal."""
    goal: Annotated[Ratio, Gt(0)] = 0.02
    """With `stop = "interval"`: half of the interval, by the ratio."""
    leave_out_settled: bool = True
    """With `stop = "interval"`: don't measure cells again whose interval is within the goal."""
    trial: PositiveSeconds = 5.0
    """Seconds of traffic in a trial, warm-up and cool-down included."""
    warm_up: SecondsOrAuto = 0.5
    """Seconds cut off at the start of a trial. `auto`: a pilot of each cell tells how many."""
    cool_down: Seconds = 0.2
    """Seconds cut off at the end of a trial."""
    seed: Annotated[int, Interval(ge=0, lt=2**63)] = 1
    """Seed of the random order of each round, and of random traffic."""
    rekey: bool = False
    """Force new keys once in each instance, while traffic flows, and measure what that costs."""
    capacity: CapacitySearch = CapacitySearch()
    """How `rate = ["capacity"]` is searched for."""
    packet_log: bool = False
    """Log every UDP datagram of the engine at both ends, into files beside the campaign."""

    @property
    def window(self) -> float:
        """Measured seconds of a trial: what lies between warm-up and cool-down."""
        return self.trial - self.warm_up_seconds - self.cool_down

    @property
    def warm_up_seconds(self) -> float:
        """Seconds cut off at the start of a trial; none where that is yet to be found."""
        return 0.0 if self.warm_up == "auto" else self.warm_up

    def override(self, rounds: int | None = None, budget: float | None = None) -> Method:
        """The same method with the rounds or the budget (seconds) that the user asks for now."""
        rounds = self.rounds if rounds is None else rounds
        changes = {"rounds": rounds, "rounds_min": min(self.rounds_min, rounds)}
        return self.model_copy(update={**changes, "budget": self.budget if budget is None else budget})

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        # What a pilot finds is at most half of it.
        warm_up = self.trial / 2 if self.warm_up == "auto" else self.warm_up
        if self.trial - warm_up - self.cool_down <= 0:
            raise ValueError(
                f"a trial of {self.trial:g} s leaves nothing to measure after {warm_up:g} s of warm-up "
                f"and {self.cool_down:g} s of cool-down"
            )
        if self.rounds_min > self.rounds:
            raise ValueError(f"rounds_min ({self.rounds_min}) is more than rounds ({self.rounds})")
        return self


class Overrides(Frozen, frozen=True):
    """What a profile of a study has in place of the study's own: whole keys of these tables."""

    inherits: Name | None = None
    """The profile whose keys this one has, too, where it has none of its own in their place."""
    factors: Mapping[str, Any] = {}
    method: Mapping[str, Any] = {}
    link: Mapping[str, Any] = {}


class Study(Frozen, frozen=True):
    """A study: the combinations of levels to measure and the method."""

    about: About = Field(alias="study")
    factors: Factors
    socket: Socket = Socket()
    link: Link = Link()
    method: Method = Method()
    published: Correspondence | None = None
    """What stands here for the factors and levels of the published study that this one repeats."""
    profiles: Mapping[Name, Overrides] = {}
    """Variants of the study by name, such as `smoke`, `standard` and `as-published`."""
    _profile: str | None = PrivateAttr(default=None)

    @property
    def profile(self) -> str | None:
        """The profile that the study is in; None where it is as it stands."""
        return self._profile

    def named(self, profile: str) -> Study:
        """The same study, known to be in a profile."""
        study = self.model_copy()
        study._profile = profile  # pyright: ignore[reportAttributeAccessIssue]  pydantic lets this be set
        return study
