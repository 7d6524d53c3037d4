"""Reading a study from TOML: text in, a checked `Study` or an error that says where and what is wrong."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from tunnelbench.errors import UserError
from tunnelbench.study.catalogue import Catalogue
from tunnelbench.study.checks import Found, sentences, unknown_names, vain_levels
from tunnelbench.study.contents import wrong_contents
from tunnelbench.study.correspondence_checks import wrong_correspondence
from tunnelbench.study.inheritance import parents_of, wrong_inheritance
from tunnelbench.study.locator import KeyPath, line_of, locate
from tunnelbench.study.model import Overrides, Study
from tunnelbench.study.nearest import advice_on
from tunnelbench.study.profiles import in_profile, place_in_profile, profile_name


@dataclass(frozen=True)
class Problem:
    """One thing wrong in a study file."""

    source: str
    """The file."""
    line: int
    """Counted from 1."""
    key: str
    """The key in question, such as `factors.mtu[0]`; empty for the file as a whole."""
    message: str

    def __str__(self) -> str:
        key = f"{self.key}: " if self.key else ""
        return f"{self.source}:{self.line}: {key}{self.message}"


class StudyError(UserError):
    """A study that can't be read, with every problem found, in the order of lines."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        self.problems = tuple(sorted(dict.fromkeys(problems), key=lambda problem: problem.line))
        super().__init__("\n".join(map(str, self.problems)))


def read_study(path: Path, catalogue: Catalogue, profile: str | None = None) -> Study:
    """The study in a TOML file. Raises UserError if the file can't be read, StudyError if it is wrong."""
    return parse_study(read_text(path), str(path), catalogue, path.parent, profile)


def read_text(path: Path) -> str:
    """The text of a study's file. Raises UserError if it can't be read."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not a text file in UTF-8 ({error.reason} at byte {error.start})") from error
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from error


def parse_study(
    text: str, source: str, catalogue: Catalogue, folder: Path | None = None, profile: str | None = None
) -> Study:
    """The study in a TOML text, in a profile: the one named, else its usual one, else as it stands.

    `source` names it in messages, `folder` has the files that it names. All profiles are checked. Raises
    StudyError with file, line, key and the nearest valid name for each problem: wrong TOML, unknown keys and
    levels, wrong units, names that the catalogue doesn't have, and levels that nothing can measure; UserError
    where the study has no such profile.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise StudyError((_syntax_problem(error, text, source),)) from error
    read = _Reading(source, locate(text), catalogue, folder)
    study = read.study(document)
    variants = {name: read.profile(document, study, name) for name in study.profiles}
    if read.problems:
        raise StudyError(tuple(read.problems))
    chosen = profile_name(study, profile)
    return study if chosen is None else variants[chosen].named(chosen)


class _Reading:
    """One file being read: checks its documents and collects what is wrong with them."""

    def __init__(
        self, source: str, lines: dict[KeyPath, int], catalogue: Catalogue, folder: Path | None
    ) -> None:
        self.problems: list[Problem] = []
        self._source = source
        self._lines = lines
        self._catalogue = catalogue
        self._folder = folder

    def study(self, document: Mapping[str, Any]) -> Study:
        """The study that a document is. Raises StudyError where it has no profiles that can be told."""
        study, found = self._checked(document)
        wrong = [] if study is None else wrong_inheritance(parents_of(study.profiles))
        for path, message in found + wrong:
            self.problems.append(_problem(path, message, self._lines, self._source))
        if study is None or wrong:
            raise StudyError(tuple(self.problems))
        return study

    def profile(self, document: Mapping[str, Any], study: Study, name: str) -> Study:
        """The study in a profile. What is wrong with the study itself is not told again."""
        variant, found = self._checked(in_profile(document, name))
        for path, message in found:
            if place := place_in_profile(path, name, study.profiles):
                self.problems.append(_problem(place, message, self._lines, self._source))
        if variant is None:
            raise StudyError(tuple(self.problems))
        return variant

    def _checked(self, document: Mapping[str, Any]) -> tuple[Study | None, Found]:
        try:
            study = Study.model_validate(document)
        except ValidationError as error:
            return None, [(_path(detail), _message(detail)) for detail in error.errors()]
        wrong = unknown_names(study, self._catalogue) or vain_levels(study, self._catalogue)
        wrong += wrong_correspondence(study, self._catalogue)
        wrong += [] if self._folder is None else wrong_contents(study, self._folder)
        return study, wrong


def _syntax_problem(error: tomllib.TOMLDecodeError, text: str, source: str) -> Problem:
    place = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", str(error))
    line = int(place[1]) if place and place[1] else text.count("\n") + 1
    message = str(error)[: place.start()] if place else str(error)
    return Problem(source, line, "", f"not valid TOML: {message}")


def _problem(path: KeyPath, message: str, lines: dict[KeyPath, int], source: str) -> Problem:
    for index, key in enumerate(path):
        if key in ("payload_bytes", "rate") and path[: index + 2] not in lines:
            path = path[: index + 1] + path[index + 2 :]  # One list stands for a table of them.
            break
    place, line = line_of(path, lines)
    return Problem(source, line, _written(place), message)


def _path(detail: ErrorDetails) -> KeyPath:
    return tuple(detail["loc"])


def _message(detail: ErrorDetails) -> str:
    match detail["type"]:
        case "extra_forbidden":
            key = str(detail["loc"][-1])
            return sentences(f"unknown key '{key}'", advice_on(key, _valid_keys(_path(detail)[:-1]), "keys"))
        case "missing":
            return f"'{detail['loc'][-1]}' is missing"
        case "literal_error":
            level = str(detail["input"])
            valid = re.findall(r"'([^']*)'", detail["ctx"]["expected"] if "ctx" in detail else "")
            return sentences(f"unknown level '{level}'", advice_on(level, valid, "levels"))
        case "value_error":
            return detail["msg"].removeprefix("Value error, ")
        case _:
            return f"{re.sub('^[A-Z][a-z]+ should', 'must', detail['msg'])}, not {detail['input']!r}"


def _valid_keys(path: KeyPath) -> list[str]:
    model: type[BaseModel] = Study
    if path[:1] == ("profiles",):
        model, path = Overrides, path[2:]
    for key in path:
        fields = {field.alias or name: field for name, field in model.model_fields.items()}
        model = _model_in(fields[str(key)].annotation)
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_in(annotation: Any) -> type[BaseModel]:  # noqa: ANN401
    if get_origin(annotation) in (Union, UnionType):
        return next(argument for argument in get_args(annotation) if issubclass(argument, BaseModel))
    return annotation


def _written(path: KeyPath) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
