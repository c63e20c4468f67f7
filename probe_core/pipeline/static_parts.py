"""The parts of a recorded report: what its readers rely on, and what stands for what is left out.

A report may be written by hand, or by an older core, so that much may be missing. What is there
must be of the type that the published schema gives it: readers look no further.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["fill"]

_NUMBER = (int, float)
# Kind: the value's type, the type of what is in it, and what stands for a value left out.
_KINDS: dict[str, tuple[Any, Any, Any]] = {
    "text": (str, None, None),
    "word": (str, None, ""),
    "number": (_NUMBER, None, None),
    "count": (_NUMBER, None, 0),
    "flag": (bool, None, False),
    "maybe": (bool, None, None),
    "severity": (str, None, "info"),
    "texts": (list, str, []),
    "numbers": (list, _NUMBER, []),
    "tables": (list, dict, []),
    "table": (dict, None, {}),
    "table of texts": (dict, str, {}),
    "table of numbers": (dict, _NUMBER, {}),
    "table of tables": (dict, dict, {}),
    "table of lists": (dict, list, {}),
}
# Part: kind: its fields; those after "or" are not filled in.
_PARTS: dict[str, dict[str, str]] = {
    "the report": {
        "table": "node",
        "table of numbers": "timings_ms",
        "tables": "outcomes decisions findings",
        "text": "primary fallback chipdb",
        "word": "probe_core",
    },
    "its node": {"table": "memory", "text": "os kernel arch model"},
    "its node's memory": {"number": "total available limit"},
    "a device": {
        "text": "name vendor parent power_state arch or gpu_id gfx compute_capability",
        "number": "fp32 fp16 int8 bandwidth units"
        " or cores threads bus_width_bits numa_node processes",
        "texts": "ids backends seen_by or dt",
        "tables": "peaks links",
        "table": "chip memory or share cpu extra",
        "table of texts": "unknown sources or pci driver",
        "table of numbers": "or clocks node_index",
        "table of tables": "visibility",
        "table of lists": "others",
    },
    "a device's memory": {
        "text": "kind",
        "number": "total free usable or used",
        "table of numbers": "parts",
    },
    "a device's chip": {
        "text": "id by confidence or name",
        "texts": "candidates or conflicts",
        "table": "or nominal",
    },
    "a peak": {
        "word": "dtype path accumulate sparsity clock source confidence",
        "text": "or variant",
        "number": "or mhz low published",
    },
    "a link": {
        "text": "or kind peer to limited_by",
        "number": "or count width max_width gts max_gts generation bandwidth local_width"
        " local_max_width local_gts local_max_gts local_generation local_bandwidth",
    },
    "what a consumer sees": {
        "maybe": "or visible",
        "number": "or index",
        "text": "or reason variable",
        "numbers": "or one_of",
    },
    "one of its outcomes": {
        "word": "prober distribution status",
        "text": "reason or code fix",
        "flag": "partial",
        "count": "devices elapsed_ms",
        "texts": "or stderr",
    },
    "one of its decisions": {
        "word": "prober distribution",
        "text": "reason or cause",
        "flag": "selected or active",
        "number": "or priority deadline_s",
    },
    "one of its findings": {"word": "code what why fix", "severity": "severity", "text": "device"},
}


def fill(what: str, part: Any) -> None:
    """Give every field of a part its stand-in where it is missing or null.

    Raises `ValueError` for a field of the wrong type.
    """
    if not isinstance(part, dict):
        raise ValueError(f"{what} is not a table")
    for kind, names in _PARTS[what].items():
        always, _, sometimes = f" {names}".partition(" or ")
        for name in always.split():
            _take(what, part, name, kind, filled=True)
        for name in sometimes.split():
            _take(what, part, name, kind, filled=False)


def _take(what: str, part: dict[str, Any], name: str, kind: str, *, filled: bool) -> None:
    types, inner, default = _KINDS[kind]
    value = part.get(name)
    if value is not None:
        if inner and isinstance(value, dict):
            part[name] = value = {key: item for key, item in value.items() if item is not None}
        items = value.values() if isinstance(value, dict) else value
        if not _is(value, types) or (inner and not all(_is(item, inner) for item in items)):
            raise ValueError(f"{what} has a {name!r} of the wrong type")
    elif filled:
        part[name] = type(default)(default) if isinstance(default, (dict, list)) else default
    elif name in part and types is list:
        del part[name]  # null says no more than nothing, and lists are gone through


def _is(value: Any, types: Any) -> bool:
    # To Python, True is a number; nobody who writes a report means it so.
    return isinstance(value, types) and (types is bool or not isinstance(value, bool))
