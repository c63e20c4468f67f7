"""`schema`: the JSON Schemas that editors use for completion, from the same fields as the check."""

import json
import os

from probe_chipdb.entry import fields
from probe_chipdb.entry.spec import Json

_DRAFT = "http://json-schema.org/draft-07/schema#"  # what TOML language servers understand


def schemas() -> dict[str, Json]:
    """File name to schema: chips, architectures, sources, publishers."""
    arch, source = fields.arch.json_schema(), fields.source.json_schema()
    publishers: Json = {"type": "object", "additionalProperties": fields.publisher.json_schema()}
    chips: Json = {
        "type": "object",
        "properties": {
            "family": fields.family.json_schema(),
            "chip": {"type": "array", "items": fields.chip.json_schema()},
            "arch": {"type": "object", "additionalProperties": arch},
            "source": {"type": "object", "additionalProperties": source},
            "publishers": publishers,
        },
        "required": ["family"],
        "additionalProperties": False,
    }
    named = {"type": "object", "propertyNames": {"pattern": f"^(?:{fields.SLUG})$"}}
    return {
        "chips.schema.json": {"title": "A family of chips", **chips, "$schema": _DRAFT},
        "arch.schema.json": {
            "title": "Architectures",
            **named,
            "additionalProperties": arch,
            "$schema": _DRAFT,
        },
        "publishers.schema.json": {"title": "Publishers", **publishers, "$schema": _DRAFT},
        "sources.schema.json": {
            "title": "Sources",
            **named,
            "additionalProperties": source,
            "$schema": _DRAFT,
        },
    }


def write(into: str) -> list[str]:
    """Write the schemas into a folder; the paths."""
    os.makedirs(into, exist_ok=True)
    paths = []
    for name, schema in schemas().items():
        paths.append(os.path.join(into, name))
        with open(paths[-1], "w", encoding="utf-8", newline="") as file:
            file.write(json.dumps(schema, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    return paths
