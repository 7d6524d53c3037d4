"""What became of a published study's findings and numbers in a campaign that repeats it."""

from __future__ import annotations

import polars

from tunnelbench.analysis.findings.beside import published_beside_ours
from tunnelbench.analysis.findings.questions import answer_paper
from tunnelbench.analysis.findings.scope import observed
from tunnelbench.report.as_run import document_as_run
from tunnelbench.report.content import Reproduction
from tunnelbench.store.model import CampaignRecord
from tunnelbench.study.correspondence import Correspondence
from tunnelbench.study.published import published


def correspondence_of(campaign: CampaignRecord) -> Correspondence | None:
    """What stands for what, where the study repeats a published one."""
    document = document_as_run(campaign)
    return Correspondence.model_validate(document["published"]) if "published" in document else None


def reproduction(correspondence: Correspondence | None, values: polars.DataFrame) -> Reproduction | None:
    """Verdicts and values side by side, from `frames.instance_values`; None where nothing is repeated.

    The values need only be those of `scope.METRICS`.
    """
    if correspondence is None:
        return None
    # Here, since it brings much of scipy along, which takes a second to load.
    from tunnelbench.analysis.findings.judge import judge

    study, seen = published(correspondence.source), observed(values)
    return Reproduction(
        source=correspondence.source,
        question=study.questions.main.asks if study.questions else study.design.question,
        answers=answer_paper(seen, study, correspondence),
        verdicts=judge(seen, study, correspondence),
        besides=published_beside_ours(seen, study, correspondence),
        notes=correspondence.notes,
    )
