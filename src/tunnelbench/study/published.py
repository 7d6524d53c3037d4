"""Published evaluations of VPNs as data: how they measured, what they reported, what they concluded.

One TOML file for each study, in `published/`. A finding is a claim stated so that fresh measurements can be
held against it. Factors and levels are those of the paper; `correspondence` says what stands for them here.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast

from annotated_types import Gt
from pydantic import BeforeValidator, Field, ValidationError, model_validator

from tunnelbench.errors import UserError
from tunnelbench.study.fields import Frozen, Name
from tunnelbench.study.nearest import advice_on

Level = int | float | str
"""A level of a factor, as the paper calls it."""


def _levels(value: object) -> object:
    return tuple(cast(list[Level], value)) if isinstance(value, list) else value


def _at_least_one(value: object) -> object:
    return tuple(cast(list[Level], value)) if isinstance(value, list) else (value,)


Choice = Annotated[tuple[Level, ...], BeforeValidator(_at_least_one)]
"""One level or a list of them."""
Order = Annotated[tuple[Level, ...], BeforeValidator(_levels)]
At = Mapping[str, Choice]
"""What is held fixed: levels by factor."""


class Design(Frozen, frozen=True):
    """What was asked, and on which machines."""

    id: Name
    question: str
    topology: str
    link: str
    gateways: str
    hosts: str
    tool: str
    networks: Order = ()


class Value(Frozen, frozen=True):
    """One reported number."""

    where: str
    """Section, figure or table."""
    metric: str
    """`throughput` in Mbit/s, `latency`, `jitter` and `round_trip` in ms, `loss_percent`, `cv_percent`: a
    coefficient of variation, `decrease_percent`: what was lost against plain IP, `throughput_difference`:
    `minuend` less `subtrahend`, `throughput_spread`: the best suite less the worst."""
    at: At
    value: float
    precision: Literal["exact", "about", "bound"]
    """Printed to the digit, said roughly, or an inequality."""
    op: Literal["<", "<=", ">", ">="] | None = None
    """Of a bound."""
    minuend: Level | None = None
    subtrahend: Level | None = None
    note: str | None = None


class Rank(Frozen, frozen=True):
    """Levels of a factor stand in an order, best first; or one is the best and one the worst of all."""

    metric: str
    factor: str
    order: Order = ()
    first: Level | None = None
    last: Level | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if not self.order and self.first is None and self.last is None:
            raise ValueError("a rank needs 'order', or 'first' or 'last'")
        return self


class Compare(Frozen, frozen=True):
    """`better` beats `worse`, each of `better` each of `worse`; or all levels of a factor are equal."""

    metric: str
    better: At | None = None
    worse: At | None = None
    ratio: Annotated[float, Gt(0)] | None = None
    """How many times better."""
    percent: Annotated[float, Gt(0)] | None = None
    """By how many percent better."""
    factor: str | None = None
    equal_within_percent: Annotated[float, Gt(0)] | None = None

    @property
    def claimed_ratio(self) -> float | None:
        """How many times better, where the paper gives a number."""
        return self.ratio if self.percent is None else 1 + self.percent / 100

    @model_validator(mode="after")
    def _complete(self) -> Self:
        ordered = self.better is not None and self.worse is not None
        equal = self.factor is not None and self.equal_within_percent is not None
        if ordered == equal:
            raise ValueError(
                "a comparison needs 'better' and 'worse', or 'factor' and 'equal_within_percent'"
            )
        return self


class Trend(Frozen, frozen=True):
    """How a metric moves as a factor grows."""

    metric: str
    over: str
    shape: Literal["rising", "falling", "rising-then-falling", "flat"]
    peak: float | None = None
    """The level of the factor at the top, for `rising-then-falling`."""


class RankStability(Frozen, frozen=True):
    """The order of the levels of a factor is the same at all levels of another."""

    metric: str
    factor: str
    over: str


class CompressionEffect(Frozen, frozen=True):
    """What turning compression on does to the throughput of VPNs, for one kind of payload."""

    payload: str
    raises: Order = ()
    lowers: Order = ()
    unchanged: Order = ()


Claim = Rank | Compare | Trend | RankStability | CompressionEffect


class Finding(Frozen, frozen=True):
    """One claim of a paper."""

    id: Name
    where: str
    says: str
    """The claim in a sentence."""
    at: At = Field(default_factory=dict)
    """Where the paper makes it; a factor not named was averaged over or varied."""
    rank: Rank | None = None
    compare: Compare | None = None
    trend: Trend | None = None
    rank_stability: RankStability | None = None
    compression_effect: CompressionEffect | None = None
    contradicted: bool = False
    """Whether the paper itself also denies it; `note` says where."""
    note: str | None = None

    @property
    def claim(self) -> Claim:
        """The one claim."""
        (claim,) = self._claims()
        return claim

    def _claims(self) -> list[Claim]:
        claims = (self.rank, self.compare, self.trend, self.rank_stability, self.compression_effect)
        return [claim for claim in claims if claim is not None]

    @model_validator(mode="after")
    def _one_claim(self) -> Self:
        if len(self._claims()) != 1:
            raise ValueError(
                "a finding makes one claim: rank, compare, trend, rank_stability or compression_effect"
            )
        return self


class Question(Frozen, frozen=True):
    """A research question, and how numbers answer it."""

    asks: str
    best: Annotated[tuple[str, ...], BeforeValidator(_levels)] = ()
    """Factors whose best combination of levels is asked for."""
    for_each: str | None = None
    """The factor for each of whose levels that is asked."""
    varies_with: str | None = None
    """The factor of which it is asked whether it matters."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if bool(self.best) == (self.varies_with is not None):
            raise ValueError("a question asks for the 'best' or whether something 'varies_with' a factor")
        return self


class Questions(Frozen, frozen=True):
    """Research questions."""

    main: Question
    sub: Annotated[tuple[Question, ...], BeforeValidator(_levels)] = ()


class Published(Frozen, frozen=True):
    """A published evaluation."""

    design: Design = Field(alias="study")
    method: Mapping[str, int | float | str]
    factors: Mapping[str, Choice]
    """Levels by factor, in the paper's order."""
    defaults: Mapping[str, Level] = {}
    """The level of a factor in tests that don't name it."""
    metrics: Order = ()
    questions: Questions | None = None
    values: Annotated[tuple[Value, ...], BeforeValidator(_levels), Field(alias="value")]
    findings: Annotated[tuple[Finding, ...], BeforeValidator(_levels), Field(alias="finding")]

    @model_validator(mode="before")
    @classmethod
    def _apart(cls, document: object) -> object:
        """Defaults and metrics stand among the factors in the files."""
        if not isinstance(document, dict) or "factors" not in document:
            return cast(object, document)
        document = cast(dict[str, Any], document)
        apart = {
            key: document["factors"][key] for key in ("defaults", "metrics") if key in document["factors"]
        }
        factors = {name: levels for name, levels in document["factors"].items() if name not in apart}
        return {**document, **apart, "factors": factors}

    def levels_of(self, factor: str) -> tuple[Level, ...]:
        """Every level of a factor that the paper names, those of its design first."""
        found = dict.fromkeys(self.factors.get(factor, ()))
        for at in self._all_levels():
            found |= dict.fromkeys(at.get(factor, ()))
        return tuple(found)

    @property
    def factor_names(self) -> tuple[str, ...]:
        """Every factor that the paper names, those of its design first."""
        return tuple(dict.fromkeys([*self.factors, *(factor for at in self._all_levels() for factor in at)]))

    def _all_levels(self) -> list[At]:
        found: list[At] = [value.at for value in self.values]
        for finding in self.findings:
            found.append(finding.at)
            match finding.claim:
                case Compare(better=better, worse=worse) if better is not None and worse is not None:
                    found += [better, worse]
                case Rank(factor=factor, order=order, first=first, last=last):
                    found.append({factor: (*order, *(one for one in (first, last) if one is not None))})
                case CompressionEffect() as effect:
                    vpns = (*effect.raises, *effect.lowers, *effect.unchanged)
                    found.append({"vpn": vpns, "payload": (effect.payload,)})
                case _:
                    pass
        return found


def published_studies() -> dict[str, Path]:
    """The files of published studies by name, in alphabetical order."""
    folder = Path(str(resources.files("tunnelbench.study") / "published"))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def published(name: str) -> Published:
    """The published study of a name. Raises UserError that names the nearest one where there is none."""
    known = published_studies()
    if name not in known:
        raise UserError(
            f"there is no published study '{name}'", advice=advice_on(name, known, "published studies")
        )
    return parse_published(known[name].read_text(encoding="utf-8"), str(known[name]))


def parse_published(text: str, source: str) -> Published:
    """A published study from TOML; `source` names it in messages. Raises UserError with every mistake."""
    try:
        return Published.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{source}: not valid TOML: {error}") from error
    except ValidationError as error:
        places = (
            f"{source}: {'.'.join(map(str, detail['loc']))}: {detail['msg'].removeprefix('Value error, ')}"
            for detail in error.errors()
        )
        raise UserError("\n".join(places)) from error
