"""The JSON Schema of the report, made from the tables of fields for wheels and for pages."""

from __future__ import annotations

from collections.abc import Mapping

from probe_core.model.document import Json
from probe_core.model.field import (
    UNBOUNDED,
    Choice,
    Field,
    Flag,
    Items,
    Number,
    TableOf,
    Text,
    Value,
    figure,
)
from probe_core.model.ids import STATUSES
from probe_core.model.report import REPORT
from probe_core.model.runtimes import RUNTIMES

Schema = dict[str, Json]

_UNITLESS = ("", "count", "number", "ordinal", "1 to 999")

_TITLES = {
    "node": "The machine itself.",
    "node_memory": "The system's memory, in bytes.",
    "network": "One link of the machine to others.",
    "device": "One physical device, or one partition of one.",
    "chip": "Which chip of chipdb a device is, and how sure that is.",
    "memory": "A device's memory, in bytes.",
    "peak": "One theoretical peak; without all of its keys a number has no meaning.",
    "measurement": "One figure that `probe bench` measured, and with what.",
    "link": "One link to another device or to the host.",
    "sight": "What one runtime shows of the device.",
    "readiness": "Whether this process can use the device, and the step that is broken.",
    "step": "One step of a device's readiness.",
    "other": "What another prober reports for a field, and was not used.",
    "outcome": "How one prober's run ended.",
    "decision": "Whether one prober was run.",
    "finding": "Something a person should know, with a cause and a fix.",
}
"""Shape of a part to what it is; also the order of the definitions."""


def schema(report: Mapping[str, Field] = REPORT) -> Schema:
    """Return the JSON Schema (draft 2020-12) of a report with these fields."""
    parts: dict[str, Mapping[str, Field]] = {}
    _collect(report, parts)
    untitled = sorted(parts.keys() - _TITLES.keys())
    if untitled:
        # A reference to a definition that is left out makes each such report invalid.
        raise LookupError(f"no title for the shapes {', '.join(untitled)}")
    top = _table(report)
    # Only here is a number a constant: it is what a reader looks at first.
    top["properties"]["schema"] = {"const": 1, "description": report["schema"].doc}  # type: ignore[index, call-overload]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:probe-core:report:1",
        "title": "A report of probe-core, schema 1",
        "description": "What a compute node is. Fields are only ever added: readers must ignore"
        " what they do not know. Unknown values are null, and a device's `unknown` gives the"
        " reason. Bytes are bytes, clocks MHz, bandwidth bytes per second, peaks TFLOPS (TOPS for"
        " integers).",
        **top,
        "$defs": {shape: _definition(shape, parts[shape]) for shape in _TITLES if shape in parts},
    }


def _collect(fields: Mapping[str, Field], parts: dict[str, Mapping[str, Field]]) -> None:
    """Find every nested part, each once."""
    for field in fields.values():
        if field.fields is not None and field.shape and field.shape not in parts:
            parts[field.shape] = field.fields
            _collect(field.fields, parts)


def _definition(shape: str, fields: Mapping[str, Field]) -> Schema:
    definition = _table(fields) | {"description": _TITLES[shape]}
    if shape == "outcome":
        # Every end but a good one has a reason: a host shows it instead of guessing.
        definition["if"] = {"properties": {"status": {"const": "ok"}}}
        definition["else"] = {"properties": {"reason": {"type": "string"}}}
        definition["properties"]["status"]["enum"] = list(STATUSES)  # type: ignore[index, call-overload]
    return definition


def _table(fields: Mapping[str, Field]) -> Schema:
    table: Schema = {"type": "object"}
    fields = {name: field for name, field in fields.items() if not field.internal}
    required: list[Json] = [
        name for name, field in fields.items() if field.always and not field.added
    ]
    if required:
        table["required"] = required
    table["properties"] = {name: _property(field) for name, field in fields.items()}
    return table


def _property(field: Field) -> Schema:
    described: Schema = {"description": sentence(field)}
    if field.single and field.shape:
        return {"$ref": f"#/$defs/{field.shape}"} | described
    described |= _value(field.value, field.shape)
    if field.shape == "sight":
        # Not an enum: a newer core may know more runtimes.
        described["propertyNames"] = {"examples": [*RUNTIMES]}
    if field.single and field.fields:
        described["properties"] = {name: _property(item) for name, item in field.fields.items()}
    return _or_null(described) if field.nullable else described


def sentence(field: Field) -> str:
    """Return what the field means, with the unit of a physical quantity."""
    if field.unit in _UNITLESS or field.unit in field.doc:
        return field.doc
    return f"{field.doc}, in {field.unit}"


def _or_null(described: Schema) -> Schema:
    described["type"] = [described["type"], "null"]
    if isinstance(described.get("enum"), list):
        described["enum"] = [*described["enum"], None]  # type: ignore[misc]
    return described


def _value(value: Value, shape: str = "") -> Schema:
    """Return the schema of one kind of value; `shape` names the part that its items are."""
    if isinstance(value, Choice):
        return {"type": "string", "enum": list(value.choices)}
    if isinstance(value, Text):
        return _text(value)
    if isinstance(value, Flag):
        return {"type": "boolean"}
    if isinstance(value, Number):
        return _number(value)
    if isinstance(value, Items):
        return _array(value, shape)
    if isinstance(value, TableOf):
        inner = value.value
        is_part = bool(shape) and not isinstance(inner, Items)
        return {
            "type": "object",
            "additionalProperties": _ref(shape) if is_part else _value(inner, shape),
        }
    return {"type": "object"} if value.single else {}


def _ref(shape: str) -> Schema:
    return {"$ref": f"#/$defs/{shape}"}


def _array(value: Items, shape: str) -> Schema:
    array: Schema = {"type": "array", "items": _ref(shape) if shape else _value(value.item)}
    if value.least:
        array["minItems"] = value.least
    return array


def _text(value: Text) -> Schema:
    schema: Schema = {"type": "string"}
    if value.least:
        schema["minLength"] = value.least
    if value.pattern:
        schema["pattern"] = value.pattern
    return schema


def _number(value: Number) -> Schema:
    """Return the bounds that readers may rely on.

    They are wider than those of what a prober may report: a figure may come from elsewhere.
    """
    if value.whole:
        return {"type": "integer", "minimum": 1 if value.low == 1 else 0}
    if value.low < 0:  # a temperature
        return {"type": "number"}
    bound = "exclusiveMinimum" if value.low > 0 else "minimum"
    return {"type": "number", bound: 0}


# How the reference names the values that a field may have; no probe imports it.


def noun_of(value: Value) -> str:
    """Return what a value must be: ``a whole number from 1 to 1,000,000``, ``a list of ids``."""
    if isinstance(value, Choice):
        return ", ".join(f"`{choice}`" for choice in value.choices)
    if isinstance(value, Number):
        return _number_noun(value)
    if isinstance(value, Items):
        return f"a list of {_plural(noun_of(value.item))}"
    if isinstance(value, TableOf):
        return f"a table of {_plural(noun_of(value.value))}"
    return value.noun


def _number_noun(value: Number) -> str:
    kind = "a whole number" if value.whole else "a number"
    if value.high >= UNBOUNDED:
        return f"{kind}, {figure(value.low)} or more"
    return f"{kind} from {figure(value.low)} to {figure(value.high)}"


def _plural(noun: str) -> str:
    """Return ``whole numbers from 1 to 9`` for ``a whole number from 1 to 9``."""
    article, *words = noun.split(" ")
    if article not in ("a", "an"):
        return noun if words else f"{noun}s"
    end = next((at for at, word in enumerate(words) if word in ("from", "in", "of")), len(words))
    return " ".join([*words[: end - 1], f"{words[end - 1]}s", *words[end:]])
