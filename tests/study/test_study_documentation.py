"""The reference page on studies names every key, with the default that it really has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tunnelbench.study.schema import study_schema

PAGE = (Path(__file__).parents[2] / "docs/reference/study.md").read_text(encoding="utf-8")


def keys(schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Every key of a study with the text that the page must have for its default."""
    definitions = schema["$defs"]
    tables = {table: it["$ref"] for table, it in schema["properties"].items() if table != "profiles"}
    tables["method.capacity"] = definitions["Method"]["properties"]["capacity"]["$ref"]
    for table, reference in tables.items():
        model = definitions[reference.rpartition("/")[2]]
        for name, value in model["properties"].items():
            if f"{table}.{name}" in tables:
                continue
            if name in ("payload_bytes", "rate") and table == "factors":
                for transport, levels in value["default"].items():
                    yield f"{table}.{name}.{transport}", f"`{json.dumps(levels)}`"
            elif name in model.get("required", []):
                yield f"{table}.{name}", "required"
            elif name == "host_os":
                yield f"{table}.{name}", "those of `gateway_os`"
            elif name == "wifi_rate":
                yield f"{table}.{name}", "no Wi-Fi"
            elif "default" in value:
                yield f"{table}.{name}", f"`{json.dumps(value['default'])}`"
            elif table == "method.capacity":
                yield f"{table}.{name}", "by rule"
            else:
                yield f"{table}.{name}", "unlimited" if table in ("link", "method") else "the system's"


def documented() -> Iterator[tuple[str, str]]:
    """Every key on the page with its default, as the tables have them."""
    for heading, section in re.findall(
        r"^## `\[([a-z_.]+)\]`\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL
    ):
        for line in section.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if len(cells) == 4 and cells[0].startswith("`"):
                yield f"{heading}.{cells[0].strip('`')}", cells[2]


def test_every_key_is_there_with_its_default() -> None:
    assert dict(documented()) == dict(keys(study_schema()))
