"""The content of a report for programs."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import msgspec

from tunnelbench.report.content import Content, Cryptography, Result
from tunnelbench.store.model import CalibrationRecord


def report_json(content: Content) -> str:
    """One object: `campaign`, `outcomes`, `results` (one per cell and runtime), `unmeasured`, `warnings`,
    `packet_logs` (one per file),
    `calibrations` (what the load generators did on their own), `cryptography` (what that of each tunnel would
    allow alone), `settled` (cells that were not measured any more once enough was known of them),
    `machine` (what else the machine did), `wall_time` (seconds by what they went into),
    `warm_ups` (what pilots found to be cut off),
    `explained` (why tunnels are as fast as they are), `reproduction` (findings of a paper with verdicts).

    Results of one point and runtime stand together, the best first by the metric that `ranked_by` names.
    """
    document = {
        "campaign": content.campaign,
        "outcomes": content.outcomes,
        "results": [_result(result) for section in content.sections for result in section.results],
        "unmeasured": content.unmeasured,
        "warnings": content.doubts,
        "bringing": content.bringing,
        "packet_logs": content.packet_logs.to_dicts(),
        "calibrations": [_calibration(record) for record in content.calibrations],
        "cryptography": [_cryptography(row) for row in content.cryptography],
        "settled": content.settled,
        "machine": content.machine,
        "wall_time": content.wall_time,
        "warm_ups": content.warm_ups,
        "explained": [
            {"tunnel": one.result.tunnel, "runtime": one.result.runtime, **one.result.point.model_dump()}
            | msgspec.to_builtins(one.why)
            for one in content.explained
        ],
        "reproduction": content.reproduction,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


def _calibration(record: CalibrationRecord) -> dict[str, Any]:
    return {
        "host_os": record.host_os,
        "mtu": record.mtu,
        **record.point.model_dump(),
        "metrics": record.metrics,
        "reason": record.reason,
    }


def _cryptography(row: Cryptography) -> dict[str, Any]:
    named = {field.name: getattr(row, field.name) for field in fields(row) if field.name != "treatment"}
    return named | row.treatment.model_dump()


def _result(result: Result) -> dict[str, Any]:
    return {
        "tunnel": result.tunnel,
        **result.treatment.model_dump(),
        "runtime": result.runtime,
        **result.point.model_dump(),
        "encrypted": result.encrypted,
        "ranked_by": result.ranked_by,
        "metrics": result.metrics,
        "added": result.added,
        "processor": result.processor,
        "proof": result.proof,
    }
