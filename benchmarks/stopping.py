"""Traffic that stop rules take until a campaign ends, and whether its ranking is right; simulated.

python benchmarks/stopping.py [CAMPAIGNS]

Four tunnels at known shares of plain IP. A round has its own luck, a machine drifts, and each instance has
luck of its own. `published` runs trials of 30 s until 30 instances vary by less than 0.5 %, for 60 rounds at
most; `interval` runs trials of 3 s until the intervals of ratios are within 2 %.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise
from random import Random

import polars
from common import spread, table

from tunnelbench.analysis.frames import TRIALS
from tunnelbench.analysis.progress import progress_of
from tunnelbench.analysis.summary import summarise
from tunnelbench.plan.stopping import stop_rule
from tunnelbench.study.model import Method

SHARES = {"open": 1.0, "gre": 0.9, "ipip": 0.84, "wireguard": 0.5, "openvpn": 0.2}
MACHINES = {"still": (0.001, 0.0, 0.001), "usual": (0.02, 0.001, 0.01), "restless": (0.10, 0.005, 0.03)}
"""Luck of a round (standard deviation), drift from one round to the next, luck of an instance."""
LEVELS: dict[str, object] = {
    "runtime": "namespace",
    "suite": "none",
    "options": "",
    "outer_ip": "ipv4",
    "clients": 1,
    "gateway_os": "bookworm",
    "host_os": "bookworm",
    "mtu": 1500,
    "transport": "tcp",
    "ip": "ipv4",
    "profile": "constant",
    "payload_bytes": 131_072,
    "direction": "forward",
    "load": "engine",
    "status": "ok",
    "metric": "throughput",
}
METHODS = {
    "published": Method.model_validate({"stop": "published", "rounds": 60, "trial": "30 s"}),
    "interval": Method.model_validate({"stop": "interval", "rounds": 60, "trial": "3 s"}),
}


def main(campaigns: int) -> None:
    """Prints rounds, seconds of traffic, and how often neighbours in the ranking are in their true order."""
    rows: list[list[str]] = []
    for machine in MACHINES:
        for name, method in METHODS.items():
            found = [campaign(method, machine, Random(f"{machine} {seed}")) for seed in range(campaigns)]
            right = sum(in_order(frame) for frame in found) / campaigns
            seconds = [frame.height * method.trial for frame in found]
            rounds = [float(frame["campaign_round"].to_list()[-1]) for frame in found]
            rows.append([machine, name, spread(rounds), spread(seconds), f"{right:.0%}"])
    print(table(("machine", "stop", "rounds", "traffic, s", "ranking right"), rows))


def campaign(method: Method, machine: str, random: Random) -> polars.DataFrame:
    """Trials until the rule ends it."""
    of_round, drift, of_instance = MACHINES[machine]
    rule = stop_rule(method)
    rows: list[dict[str, object]] = []
    for number in range(1, method.rounds + 1):
        progress = progress_of(frame(rows), [1.0] * (number - 1))
        if rule.reason_to_stop(progress) is not None:
            break
        settled = {cell.name.partition(",")[0] for cell in rule.settled(progress)}
        luck = random.gauss(1, of_round) * (1 - drift) ** number
        rows += [
            {
                **LEVELS,
                "vpn": vpn,
                "campaign_round": number,
                "instance": len(SHARES) * number + place,
                "trial": len(SHARES) * number + place,
                "value": 2000 * share * luck * random.gauss(1, of_instance),
            }
            for place, (vpn, share) in enumerate(SHARES.items())
            if vpn not in settled
        ]
    return frame(rows)


def frame(rows: Sequence[dict[str, object]]) -> polars.DataFrame:
    """The rows as a frame of trials."""
    return polars.DataFrame(rows, schema=TRIALS, orient="row")


def in_order(trials: polars.DataFrame) -> bool:
    """Whether the tunnels' ratios to plain IP have the order of their true shares."""
    ratios = dict(summarise(trials).select("vpn", "ratio").iter_rows())
    return all(ratios[faster] > ratios[slower] for faster, slower in pairwise(SHARES))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
