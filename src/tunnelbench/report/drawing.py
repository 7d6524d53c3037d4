"""Draws figures: files that stand alone, and drawings for a page that follow its light and dark colours."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import vl_convert
from markupsafe import Markup, escape

from tunnelbench.report.figures import Chart
from tunnelbench.report.theme import FAINT, INK, PAPER, THEME

_PNG_SCALE = 2.0
_BACKGROUND = re.compile(rf'<rect width="[\d.]+" height="[\d.]+" fill="{PAPER}"\s*/>')


@dataclass(frozen=True)
class Drawing:
    """A figure, black on white, with the words that stand for it where it can't be seen."""

    name: str
    """File name without ending, different for every figure of a report."""
    title: str
    alternative: str
    specification: Mapping[str, Any]
    """In Vega-Lite."""

    @cached_property
    def svg(self) -> str:
        """As SVG text."""
        return vl_convert.vegalite_to_svg(dict(self.specification))

    def write(self, folder: Path) -> None:
        """Write `name`.svg, `name`.pdf and `name`.png into `folder`."""
        specification = dict(self.specification)
        (folder / f"{self.name}.svg").write_text(self.svg, encoding="utf-8")
        (folder / f"{self.name}.pdf").write_bytes(vl_convert.vegalite_to_pdf(specification))
        (folder / f"{self.name}.png").write_bytes(vl_convert.vegalite_to_png(specification, scale=_PNG_SCALE))

    def for_page(self) -> Markup:
        """The SVG as an element of an HTML page, drawn in the page's own text and line colours.

        Identifiers inside get `name` as prefix, since a page holds several drawings.
        """
        inner = _BACKGROUND.sub("", self.svg, count=1)
        inner = inner.replace(INK, "currentColor").replace(FAINT, "var(--line)")
        inner = inner.replace(' id="', f' id="{self.name}-').replace("url(#", f"url(#{self.name}-")
        spoken = f'<svg role="img" aria-label="{escape(self.alternative)}" '
        return Markup(inner.replace("<svg ", spoken, 1))


def draw(chart: Chart, name: str, title: str, alternative: str) -> Drawing:
    """Prepare a figure; it is drawn when it is needed."""
    return Drawing(name, title, alternative, chart.to_dict(validate=False) | {"config": THEME})
