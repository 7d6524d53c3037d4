"""How all figures look: Vega-Lite's configuration, with two colours that a page replaces by its own."""

from __future__ import annotations

from typing import Any

INK = "#1f2328"
"""Text and axes; in a page they take the colour of its text."""
FAINT = "#c9d1d9"
"""Grid lines; in a page they take the colour of its lines."""
PAPER = "white"

THEME: dict[str, Any] = {
    # Metrically alike, so that labels keep the room that was measured for them wherever the figure is seen.
    "font": "Liberation Sans, Arial, Helvetica, sans-serif",
    "background": PAPER,
    "padding": {"left": 24, "right": 24, "top": 10, "bottom": 10},
    "view": {"stroke": None},
    "axis": {
        "labelColor": INK,
        "titleColor": INK,
        "domainColor": INK,
        "tickColor": INK,
        "gridColor": FAINT,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "labelLimit": 0,
        "labelFlush": False,
    },
    "legend": {
        "orient": "top",
        "labelColor": INK,
        "labelFontSize": 12,
        "labelLimit": 0,
        "symbolOpacity": 1,
        "titleColor": INK,
        "titleFontWeight": "normal",
    },
    "title": {"color": INK, "fontSize": 13, "anchor": "start", "frame": "group", "offset": 8},
    "text": {"fontSize": 11},
}
