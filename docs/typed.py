"""Python made from the tables of fields: the bodies of the TypedDicts, and types of attributes."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

# Made from this checkout, whatever else is installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from probe_core import model
from probe_core.model.device import FIELDS
from probe_core.model.field import (
    Choice,
    Field,
    Flag,
    Free,
    Items,
    Number,
    TableOf,
    Value,
    fields_of,
)
from probe_core.model.parts import ECC, LINK, MEASURED, NETWORK, OTHER, POWER, SIGHT, STEP

__all__ = ["BODIES", "VIEWS", "annotation"]

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

VIEWS: dict[str, Fields] = {name: fields_of(getattr(model, name)) for name in model.__all__}
"""Class of a typed view to its fields."""

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


def annotation(field: Field, *, of_sample: bool = False) -> str:
    """Return the type that a field of a typed view is annotated with.

    A part of a report is always there; a part or list of a sample that is not known is None.
    """
    kind = _annotation(field)
    is_known = field.required or field.empty is not None or not field.nullable
    return kind if not of_sample or is_known or kind.endswith("None") else f"{kind} | None"


def _annotation(field: Field) -> str:
    if field.view is not None:
        return field.view.__name__ if field.single else f"tuple[{field.view.__name__}, ...]"
    if isinstance(field.value, Items):
        return f"tuple[{DICTS.get(field.shape) or _plain(field.value.item)}, ...]"
    if field.name in _TABLES:
        return f"{_TABLES[field.name]} | None"
    if field.shape == "other":
        return "Mapping[str, Sequence[OtherDoc]]"
    kind = "str" if isinstance(field.value, Choice) else _document_type(field)
    kind = kind.replace("dict[", "Mapping[")
    return kind if field.empty is not None or field.required else f"{kind} | None"


def _facts() -> str:
    """Return what an outcome may say beside its reason: its optional words and numbers."""
    facts = [field for field in VIEWS["Outcome"].values() if not field.always and field.nullable]
    return _body(f"{field.name}: {_plain(field.value)}" for field in facts)


def _sighting_memory() -> str:
    return _body(f"{field.name}: {_plain(field.value)}" for field in VIEWS["Memory"].values())


_PARTS: dict[str, Fields] = {
    "ReadinessDoc": VIEWS["Readiness"],
    "StepDoc": STEP,
    "MemoryDoc": VIEWS["Memory"],
    "PowerDoc": POWER,
    "EccDoc": ECC,
    "PeakDoc": VIEWS["Peak"],
    "MeasuredDoc": MEASURED,
    "ChipDoc": VIEWS["ChipRef"],
    "LinkDoc": LINK,
    "VisibilityDoc": SIGHT,
    "OtherDoc": OTHER,
    "DeviceDoc": FIELDS,
    "NetworkDoc": NETWORK,
    "NodeMemoryDoc": VIEWS["NodeMemory"],
    "NodeDoc": VIEWS["Node"],
    "OutcomeDoc": VIEWS["Outcome"],
    "DecisionDoc": VIEWS["Decision"],
    "FindingDoc": VIEWS["Finding"],
}

BODIES: dict[str, Callable[[], str]] = {
    "Sighting": sighting,
    "SightingMemory": _sighting_memory,
    "OutcomeFacts": _facts,
    **{name: partial(typed_dict, fields) for name, fields in _PARTS.items()},
}
"""Name of a region in a module of the model to what makes it."""
