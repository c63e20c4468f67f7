"""Python made from the tables of fields: the bodies of the TypedDicts and of the typed views."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

# Made from this checkout, whatever else is installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from probe_core.model.field import Choice, Field, Flag, Free, Items, Number, TableOf, Value
from probe_core.model.fields import FIELDS
from probe_core.model.parts import (
    CHIP,
    ECC,
    LINK,
    MEASURED,
    MEMORY,
    OTHER,
    PEAK,
    POWER,
    READINESS,
    SIGHT,
    STEP,
)
from probe_core.model.report_fields import DECISION, FINDING, NETWORK, NODE, NODE_MEMORY, OUTCOME
from probe_core.model.schema import sentence

__all__ = ["BODIES", "VIEWS"]

Fields = dict[str, Field]

DICTS = {
    "chip": "ChipDoc",
    "link": "LinkDoc",
    "measurement": "MeasuredDoc",
    "memory": "MemoryDoc",
    "node": "NodeDoc",
    "network": "NetworkDoc",
    "node_memory": "NodeMemoryDoc",
    "other": "OtherDoc",
    "peak": "PeakDoc",
    "readiness": "ReadinessDoc",
    "sight": "VisibilityDoc",
    "step": "StepDoc",
}
"""Shape of a nested table to its TypedDict."""

_TABLES = {"pci": "PciDoc", "power": "PowerDoc", "ecc": "EccDoc"}
"""Name of a table that may be null to its TypedDict."""

VIEWS: dict[str, Fields] = {
    "Device": FIELDS,
    "Memory": MEMORY,
    "Peak": PEAK,
    "ChipRef": CHIP,
    "Readiness": READINESS,
    "Node": NODE,
    "NodeMemory": NODE_MEMORY,
    "Outcome": OUTCOME,
    "Decision": DECISION,
    "Finding": FINDING,
}
"""Class of a typed view to its fields."""

_NESTED_VIEWS = {
    "chip": "ChipRef",
    "memory": "Memory",
    "readiness": "Readiness",
    "node_memory": "NodeMemory",
}
_ITEM_VIEWS = {"peak": "Peak"}
_LITERALS = {
    ("gpu", "npu", "accelerator", "cpu", "display"): "Kind",
    ("info", "warning", "error"): "Severity",
}


def typed_dict(fields: Fields) -> str:
    """Return the body of the TypedDict (``total=False``) of a part of the report."""
    reported = (field for field in fields.values() if not field.internal)
    return _body(f"{field.name}: {_dict_type(field)}" for field in reported)


def sighting() -> str:
    """Return the body of the TypedDict of what a prober reports of one device."""
    reported = [field for field in FIELDS.values() if field.reported]
    return _body(f"{field.name}: {_sighting_type(field)}" for field in reported)


def view(fields: Fields) -> str:
    """Return the body of the attrs class of a part of the report."""
    reported = (field for field in fields.values() if not field.internal)
    ordered = sorted(reported, key=lambda field: not _is_mandatory(field))
    return _body(f"{_view_line(field)}\n{_docstring(sentence(field))}" for field in ordered)


def _docstring(text: str) -> str:
    return textwrap.fill(f'"""{text}."""', 95)


def _body(lines: Iterable[str]) -> str:
    return textwrap.indent("\n".join(lines), "    ")


def _plain(value: Value) -> str:
    """Return the Python type of a value in a document."""
    if isinstance(value, Choice) and value.choices in _LITERALS:
        return _LITERALS[value.choices]
    if isinstance(value, Flag):
        return "bool"
    if isinstance(value, Number):
        return "int" if value.whole else "float"
    if isinstance(value, Items):
        return f"list[{_plain(value.item)}]"
    if isinstance(value, TableOf):
        return f"dict[str, {_plain(value.value)}]"
    if isinstance(value, Free):
        return "dict[str, Json]" if value.single else "Json"
    return "str"


def _dict_type(field: Field) -> str:
    kind = _document_type(field)
    if field.nullable:
        kind += " | None"
    return f"Required[{kind}]" if field.always else kind


def _document_type(field: Field) -> str:
    if field.name in _TABLES:
        return _TABLES[field.name]
    if field.name == "fallback":
        return "Fallback"
    name = DICTS.get(field.shape)
    if name is None:
        return _plain(field.value)
    if field.single:
        return name
    if isinstance(field.value, TableOf):
        return f"dict[str, list[{name}]]" if field.shape == "other" else f"dict[str, {name}]"
    return f"list[{name}]"


def _sighting_type(field: Field) -> str:
    inner = "SightingMemory" if field.name == "memory" else _document_type(field)
    return f"Required[{inner}]" if field.name in ("ids", "kind") else inner


def _is_mandatory(field: Field) -> bool:
    return field.required or (field.always and field.empty == "" and not field.nullable)


def _view_line(field: Field) -> str:
    kind, default = _view_type(field)
    if _is_mandatory(field):
        return f"{field.name}: {kind}"
    if default is None:
        return f"{field.name}: {kind} | None = None"
    return f"{field.name}: {kind} = {default}"


def _view_type(field: Field) -> tuple[str, str | None]:
    """Return (type, default) of a field of a view; a default of None stands for None."""
    if field.shape in _NESTED_VIEWS:
        return _NESTED_VIEWS[field.shape], f"{_NESTED_VIEWS[field.shape]}()"
    if isinstance(field.value, Items):
        name = _ITEM_VIEWS.get(field.shape) or DICTS.get(field.shape) or _plain(field.value.item)
        return f"tuple[{name}, ...]", "()"
    if field.name in _TABLES:
        return _TABLES[field.name], None
    if field.shape == "other":
        return "Mapping[str, Sequence[OtherDoc]]", "EMPTY"
    if isinstance(field.value, TableOf | Free):
        kind = _document_type(field).replace("dict[", "Mapping[")
        return kind, "EMPTY" if field.empty == {} else None
    kind = "str" if isinstance(field.value, Choice) else _plain(field.value)
    return kind, None if field.empty is None else _literal(field.empty)


def _literal(value: object) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _facts() -> str:
    """Return what an outcome may say beside its reason: its optional words and numbers."""
    facts = [field for field in OUTCOME.values() if not field.always and field.nullable]
    return _body(f"{field.name}: {_plain(field.value)}" for field in facts)


def _sighting_memory() -> str:
    return _body(f"{field.name}: {_plain(field.value)}" for field in MEMORY.values())


_PARTS: dict[str, Fields] = {
    "ReadinessDoc": READINESS,
    "StepDoc": STEP,
    "MemoryDoc": MEMORY,
    "PowerDoc": POWER,
    "EccDoc": ECC,
    "PeakDoc": PEAK,
    "MeasuredDoc": MEASURED,
    "ChipDoc": CHIP,
    "LinkDoc": LINK,
    "VisibilityDoc": SIGHT,
    "OtherDoc": OTHER,
    "DeviceDoc": FIELDS,
    "NetworkDoc": NETWORK,
    "NodeMemoryDoc": NODE_MEMORY,
    "NodeDoc": NODE,
    "OutcomeDoc": OUTCOME,
    "DecisionDoc": DECISION,
    "FindingDoc": FINDING,
}

BODIES: dict[str, Callable[[], str]] = {
    "Sighting": sighting,
    "SightingMemory": _sighting_memory,
    "OutcomeFacts": _facts,
    **{name: partial(typed_dict, fields) for name, fields in _PARTS.items()},
    **{name: partial(view, fields) for name, fields in VIEWS.items()},
}
"""Name of a region in a module of the model to what makes it."""
