"""The paragraph on the method says what the campaign's network was made of."""

from __future__ import annotations

from dataclasses import replace

from tunnelbench.report.content import Content
from tunnelbench.report.method import paragraph


def test_a_hop_of_wifi_is_told_where_there_was_one(content: Content) -> None:
    study = '[profiles.wifi.link]\nwifi_rate = "100 Mbit/s"\n'
    for plan, told in (({}, False), ({"profile": "wifi"}, True)):
        campaign = replace(content.campaign, study_toml=study, plan=plan)
        text = paragraph(replace(content, campaign=campaign))
        assert ("a hop of 802.11n with WPA2" in text, "limited to 100 Mbit/s" in text) == (told, told)
