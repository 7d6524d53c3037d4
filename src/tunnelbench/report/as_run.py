"""The study of a campaign as it was run."""

from __future__ import annotations

import tomllib
from typing import Any

from tunnelbench.store.model import CampaignRecord
from tunnelbench.study.model import Link
from tunnelbench.study.profiles import in_profile


def document_as_run(campaign: CampaignRecord) -> dict[str, Any]:
    """The study's TOML, in the profile in which it was run."""
    document: dict[str, Any] = tomllib.loads(campaign.study_toml)
    profile = campaign.plan.get("profile")
    if isinstance(profile, str) and profile in document.get("profiles", {}):
        return in_profile(document, profile)
    return document


def link_as_run(campaign: CampaignRecord) -> Link:
    """The study's link, in the profile in which it was run."""
    return Link.model_validate(document_as_run(campaign).get("link", {}))
