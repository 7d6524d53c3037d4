"""The bundled studies and the published schema."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from tunnelbench.errors import UserError
from tunnelbench.study.catalogue import Catalogue
from tunnelbench.study.cells import expand
from tunnelbench.study.library import bundled, resolve
from tunnelbench.study.reading import StudyError, parse_study, read_study
from tunnelbench.study.schema import study_schema, study_schema_text

PUBLISHED_SCHEMA = Path(__file__).parents[2] / "docs/reference/study.schema.json"


@pytest.mark.parametrize("name", bundled())
def test_the_schema_takes_bundled_studies(name: str) -> None:
    document = tomllib.loads(bundled()[name].read_text())
    jsonschema.validate(document, study_schema())
    assert document["study"]["id"] == name


def test_quick_skips_only_udp_over_port_forwarding(catalogue: Catalogue) -> None:
    cells = expand(read_study(bundled()["quick"], catalogue), catalogue)
    assert len(cells) == 22
    (skipped,) = (cell for cell in cells if cell.skipped)
    assert (skipped.treatment.vpn, skipped.point.transport) == ("ssh-port-forwarding", "udp")


def test_a_study_is_found_by_name_or_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "own.toml"
    own.touch()
    monkeypatch.chdir(tmp_path)
    assert resolve("quick") == bundled()["quick"]
    assert resolve("own.toml") == Path("own.toml")
    assert resolve(str(own)) == own


@pytest.mark.parametrize("name", ["qick", "qick.toml", "/nowhere/qick.toml"])
def test_a_study_that_does_not_exist(name: str) -> None:
    with pytest.raises(UserError, match="there is no study") as error:
        resolve(name)
    assert "Did you mean 'quick'?" in (error.value.advice or "")


def test_the_published_schema_is_current() -> None:
    assert PUBLISHED_SCHEMA.read_text() == study_schema_text(), (
        "write tunnelbench.study.schema.study_schema_text() to docs/reference/study.schema.json"
    )


@pytest.mark.parametrize(
    ("line", "valid"),
    [
        ('rate = ["max", "10 Mbit/s", "10000 packets/s"]', True),
        ("payload_bytes = [64, 1400]", True),
        ('payload_bytes = { tcp = ["128 KiB"] }', True),
        ('rate = ["10 mbps"]', False),
        ("payload_bytes = []", False),
        ("payload_bytes = { sctp = [1] }", False),
        ("mtu = [1500, 1500]", False),
        ('transport = ["sctp"]', False),
        ("colour = 1", False),
        ('[method]\nbudget = "10m"', True),
        ("[method]\nbudget = 600", False),
        ('[method]\ntrial = "-5 s"', False),
        ("[link]\nloss = 0.01", True),
        ('[link]\nloss = "1 %"', True),
        ("[link]\nloss = 1.5", False),
    ],
)
def test_the_schema_and_the_reader_agree(catalogue: Catalogue, line: str, valid: bool) -> None:
    text = f'[study]\nid = "one"\ntitle = "One"\nquestion = "Which?"\n[factors]\ntunnel = ["ipip"]\n{line}\n'
    assert accepts(lambda: jsonschema.validate(tomllib.loads(text), study_schema())) == valid
    assert accepts(lambda: parse_study(text, "one.toml", catalogue)) == valid


def accepts(check: Callable[[], object]) -> bool:
    try:
        check()
    except (jsonschema.ValidationError, StudyError):
        return False
    return True
