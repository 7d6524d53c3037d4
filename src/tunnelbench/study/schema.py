"""The JSON Schema of studies, for editors that complete and check TOML."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel

from tunnelbench.study.correspondence import Correspondence
from tunnelbench.study.model import (
    About,
    CapacitySearch,
    Factors,
    Link,
    Method,
    Overrides,
    Payloads,
    Rates,
    Socket,
    Study,
)


def study_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a study file."""
    schema = Study.model_json_schema()
    definitions = schema["$defs"]
    _fit(Study, schema["properties"])
    for model in (
        About,
        Factors,
        Payloads,
        Rates,
        Socket,
        Link,
        CapacitySearch,
        Method,
        Overrides,
        Correspondence,
    ):
        _fit(model, definitions[model.__name__]["properties"])
    for name, table in (("payload_bytes", "Payloads"), ("rate", "Rates")):
        one_list = {**definitions[table]["properties"]["udp"]}
        del one_list["default"]
        factor = definitions["Factors"]["properties"][name]
        factor["anyOf"] = [{"$ref": factor.pop("$ref")}, one_list]
    partial = definitions["Overrides"]["properties"]
    for table, model in (("factors", Factors), ("method", Method), ("link", Link)):
        own = {
            key: {part: value for part, value in described.items() if part != "default"}
            for key, described in definitions[model.__name__]["properties"].items()
        }
        partial[table] = {"type": "object", "properties": own, "additionalProperties": False}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "tunnelbench study"}


def study_schema_text() -> str:
    """The schema as it is published in the documentation."""
    return json.dumps(study_schema(), indent=2) + "\n"


def _fit(model: type[BaseModel], properties: dict[str, dict[str, Any]]) -> None:
    """Write defaults as a user would ("5 s", not 5.0) and leave out null, which TOML doesn't have."""
    defaults = model.model_construct().model_dump(mode="json", by_alias=True, exclude_none=True)
    for name, property_schema in properties.items():
        property_schema.pop("title", None)
        property_schema.pop("default", None)
        alternatives = property_schema.get("anyOf", [])
        if {"type": "null"} in alternatives:
            del property_schema["anyOf"]
            others = [one for one in alternatives if one != {"type": "null"}]
            property_schema.update(others[0] if len(others) == 1 else {"anyOf": others})
        if name in defaults:
            property_schema["default"] = defaults[name]
