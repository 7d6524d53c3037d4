"""How it was measured, in a paragraph for a paper, and how to cite it."""

from __future__ import annotations

from tunnelbench.report.as_run import link_as_run
from tunnelbench.report.content import Content
from tunnelbench.store.model import CampaignRecord
from tunnelbench.study.quantity import format_bit_rate


def paragraph(content: Content) -> str:
    """The method of a campaign in sentences that a paper can take over, with the numbers of this campaign."""
    campaign = content.campaign
    counts = [
        result.ranking.n_instances
        for section in content.sections
        for result in section.results
        if result.ranking is not None
    ]
    instances = (
        f"{min(counts)} to {max(counts)}"
        if counts and min(counts) < max(counts)
        else str(max(counts, default=0))
    )
    tunnels = len({result.treatment for section in content.sections for result in section.results})
    ended = f" It ended because {campaign.why}." if campaign.state == "finished" and campaign.why else ""
    profile = campaign.plan.get("profile")
    study = f"the study {campaign.study_id}" + (f" in its profile {profile}" if profile else "")
    return (
        f"We measured with tunnelbench {campaign.versions.product} on {campaign.versions.processor} "
        f"(Linux {campaign.versions.kernel}) and ran {study}, seed {campaign.seed}. "
        f"{tunnels} tunnels were compared with {len(content.sections)} kinds of traffic in a split-plot "
        "design: each round brought every tunnel up once, plain IP among them, in a random order, with new "
        "keys and new processes, and sent all kinds of traffic through it. The bring-up is the unit of "
        f"replication, with {instances} of them for each result; its trials were averaged. A tunnel was "
        "measured only after captures on the wire between its gateways had shown its protocol and no "
        f"readable payload, and its programs had named the cipher suite asked for.{_wifi(campaign)} We "
        "report medians with bootstrap intervals of at most 95 % confidence, as absolute values and as "
        f"ratios to plain IP of the same round.{ended}"
    )


def _wifi(campaign: CampaignRecord) -> str:
    rate = link_as_run(campaign).wifi_rate
    if rate is None:
        return ""
    return (
        " Between the first host and its gateway was a hop of 802.11n with WPA2, its radios simulated by "
        f"Linux (mac80211_hwsim) and its airtime limited to {format_bit_rate(rate)}."
    )


def bibtex(campaign: CampaignRecord) -> str:
    """A BibTeX entry for the software in the version that measured."""
    version = campaign.versions.product
    return (
        "@software{tunnelbench,\n"
        "  title   = {{tunnelbench}: a laboratory that measures what a {VPN} costs},\n"
        "  author  = {{The tunnelbench authors}},\n"
        f"  version = {{{version}}},\n"
        f"  year    = {{{campaign.created.year}}},\n"
        f"  note    = {{Campaign {campaign.id}}}\n"
        "}"
    )
