"""Believe nothing a prober says before it was checked, field by field.

A bad value becomes unknown, with the reason, and the device stays: one wrong number must not hide
a GPU. Only a device without a usable id is refused.
"""

from __future__ import annotations

from probe_core.ids import normalise_id
from probe_core.isolation.wire import INVALID
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Check = Callable[[Any], Any]

__all__ = ["FIELDS", "KINDS", "Rejected", "check_finding", "check_sighting"]

KINDS = ("gpu", "npu", "accelerator", "cpu", "display")
MIB = 1 << 20
MAX_MEMORY = 64 << 40
MAX_IDS = 64


class Rejected(ValueError):
    """A value that cannot be true; the message says why."""


def check_sighting(raw: object) -> tuple[dict[str, Any] | None, list[str]]:
    """Return (sighting with checked fields, sentences about rejected values).

    The sighting is None when it has no id, or no known kind, to be merged by.
    """
    if not isinstance(raw, dict) or INVALID in raw:
        shown = _reason(raw) if isinstance(raw, dict) else type(raw).__name__
        return None, [f"a device must be a mapping, found {clean_text(shown)}"]
    problems: list[str] = []
    sighting: dict[str, Any] = {}
    unknown: dict[str, str] = {}
    for key, value in _with_shorthands(raw).items():
        if value is None or key == "unknown":
            continue
        _take(sighting, unknown, problems, key, value)
    unknown.update(_unknown(raw.get("unknown")))
    if not sighting.get("ids") or "kind" not in sighting:
        missing = "ids" if not sighting.get("ids") else "kind"
        problems.append(f"a device has no usable {missing!r}, so it was left out")
        return None, problems
    sighting["unknown"] = unknown
    return sighting, problems


def _with_shorthands(raw: dict[str, Any]) -> dict[str, Any]:
    if "memory_bytes" not in raw:
        return raw
    memory = raw.get("memory")
    memory = dict(memory) if isinstance(memory, dict) else {}
    memory.setdefault("total", raw["memory_bytes"])
    return {k: v for k, v in raw.items() if k != "memory_bytes"} | {"memory": memory}


def _take(
    sighting: dict[str, Any],
    unknown: dict[str, str],
    problems: list[str],
    key: str,
    value: Any,
) -> None:
    check = FIELDS.get(key)
    if check is None:
        problems.append(f"the field {clean_text(key, 60)!r} is not one of a device's")
        return
    if isinstance(check, dict):
        _take_table(sighting, unknown, problems, key, value)
        return
    try:
        sighting[key] = check(value)
    except Rejected as error:
        unknown[key] = str(error)
        problems.append(f"{key}: {error}")


def _take_table(
    sighting: dict[str, Any],
    unknown: dict[str, str],
    problems: list[str],
    key: str,
    value: Any,
) -> None:
    """Check a table of named values; each is kept or rejected on its own."""
    if not isinstance(value, dict) or INVALID in value:
        unknown[key] = f"expected a table, found {_shown(value)}"
        problems.append(f"{key}: {unknown[key]}")
        return
    table: dict[str, Any] = {}
    checks = FIELDS[key]
    for name, item in list(value.items())[:MAX_IDS]:
        path = f"{key}.{clean_text(name, 40)}"
        check = checks.get(name, checks.get("*"))
        try:
            if check is None:
                raise Rejected("is not a field of it")
            if item is not None:
                table[clean_text(name, 40)] = check(item)
        except Rejected as error:
            unknown[path] = str(error)
            problems.append(f"{path}: {error}")
    if table:
        sighting[key] = table


def _unknown(raw: object) -> dict[str, str]:
    if not isinstance(raw, dict):
        return {}
    items = list(raw.items())[:MAX_IDS]
    return {clean_text(k, 80): clean_text(v, 400) for k, v in items if isinstance(v, str)}


def _reason(value: dict[str, Any]) -> str:
    return str(value.get(INVALID, "a table"))


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return clean_text(_reason(value), 200)
    return clean_text(f"{type(value).__name__} {value!r}", 80)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Rejected(f"expected text, found {_shown(value)}")
    text = clean_text(value).strip()
    if not text:
        raise Rejected("it is empty")
    return text


def _word(value: Any) -> str:
    return _text(value).lower()


def _number(low: float, high: float, *, whole: bool = False) -> Check:
    def check(value: Any) -> Any:
        if type(value) not in (int, float):
            raise Rejected(f"expected a number, found {_shown(value)}")
        if not low <= value <= high:
            shown = f"{value:.6g}" if isinstance(value, float) else clean_text(str(value), 40)
            raise Rejected(f"{shown} is not between {low:.6g} and {high:.6g}")
        if whole and value != int(value):
            raise Rejected(f"expected a whole number, found {value}")
        return int(value) if whole else value

    return check


def _list(check: Check, limit: int = MAX_IDS) -> Check:
    def check_list(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise Rejected(f"expected a list, found {_shown(value)}")
        if len(value) > limit:
            raise Rejected(f"more than {limit} entries")
        return [check(item) for item in value]

    return check_list


def _ids(value: Any) -> list[str]:
    if not isinstance(value, list) or not value:
        raise Rejected(f"expected a list of ids, found {_shown(value)}")
    ids = list(dict.fromkeys(_id(item) for item in value[:MAX_IDS]))
    addresses = [one for one in ids if one.startswith("pci:")]
    if len(addresses) > 1:  # it would make two devices of others into one
        raise Rejected(f"one device has one PCI address, found {', '.join(addresses)}")
    return ids


def _id(value: Any) -> str:
    if not isinstance(value, str):
        raise Rejected(f"an id must be text, found {_shown(value)}")
    try:
        return normalise_id(value)
    except ValueError as error:
        raise Rejected(clean_text(str(error))) from None


def _kind(value: Any) -> str:
    if value not in KINDS:
        raise Rejected(f"expected one of {', '.join(KINDS)}, found {_shown(value)}")
    return str(value)


def _choice(*choices: str) -> Check:
    def check(value: Any) -> str:
        if value not in choices:
            raise Rejected(f"expected one of {', '.join(choices)}, found {_shown(value)}")
        return str(value)

    return check


def _link(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or INVALID in value:
        raise Rejected(f"a link must be a table, found {_shown(value)}")
    link = {clean_text(k, 40): _free(v) for k, v in list(value.items())[:24]}
    if "kind" not in link:
        raise Rejected("a link needs a kind")
    if isinstance(link.get("peer"), str):
        link["peer"] = _id(link["peer"])
    return link


def _free(value: Any, depth: int = 0) -> Any:
    """Return small free JSON with safe text, or raise `Rejected`."""
    if isinstance(value, str):
        return clean_text(value)
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        if value - value != 0.0:
            raise Rejected(f"{value} is not finite")
        return value
    if not isinstance(value, (dict, list, tuple)):
        raise Rejected(f"not plain data: {_shown(value)}")
    if depth >= 4 or INVALID in value or len(value) > MAX_IDS:
        raise Rejected(f"not small plain data: {_shown(value)}")
    if isinstance(value, dict):
        return {clean_text(k, 80): _free(v, depth + 1) for k, v in value.items()}
    return [_free(v, depth + 1) for v in value]


def _free_table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Rejected(f"expected a table, found {_shown(value)}")
    table: dict[str, Any] = _free(value)
    return table


def _peak(value: Any) -> dict[str, Any]:
    table = _free(value)
    wanted = {"dtype", "path", "accumulate", "sparsity", "clock", "tflops", "source"}
    if not isinstance(table, dict) or not wanted <= set(table):
        raise Rejected(f"a peak needs {', '.join(sorted(wanted))}")
    _number(1e-6, 1e7)(table["tflops"])
    return {**table, "confidence": table.get("confidence", "reported")}


_BYTES = _number(0, MAX_MEMORY, whole=True)
_TOTAL = _number(MIB, MAX_MEMORY, whole=True)
_MHZ = _number(1, 100_000)
_COUNT = _number(1, 1_000_000, whole=True)

FIELDS: dict[str, Any] = {
    "ids": _ids,
    "kind": _kind,
    "vendor": _word,
    "name": _text,
    "pci": {"id": _word, "subsystem": _word, "revision": _word, "class": _word},
    "dt": _list(_text),
    "gpu_id": _word,
    "compute_capability": _text,
    "gfx": _word,
    "arch": _word,
    "units": _COUNT,
    "cores": _COUNT,
    "threads": _COUNT,
    "clocks": {"*": _MHZ},
    "bus_width_bits": _COUNT,
    "bandwidth": _number(1e6, 1e15),
    "memory": {
        "kind": _choice("dedicated", "shared", "unified"),
        "total": _TOTAL,
        "free": _BYTES,
        "used": _BYTES,
        "usable": _BYTES,
        "parts": lambda value: _parts(value),
    },
    "driver": {"*": _text},
    "backends": _list(_word),
    "power_state": _word,
    "numa_node": _number(0, 4096, whole=True),
    "parent": lambda value: _ids([value])[0],
    "share": {"units": _COUNT, "of": _COUNT, "*": _number(0, 1e12)},
    "links": _list(_link, 256),
    "node_index": {"*": _number(0, 1_000_000, whole=True)},
    "processes": _number(0, 1_000_000, whole=True),
    "peaks": _list(_peak),
    "cpu": lambda value: _free_table(value),
    "extra": lambda value: _free_table(value),
}
"""A device's fields, each with its check; a table of checks stands for a nested table."""


def _parts(value: Any) -> dict[str, int]:
    if not isinstance(value, dict) or INVALID in value or len(value) > 16:
        raise Rejected(f"expected a table of bytes, found {_shown(value)}")
    return {clean_text(name, 40): _BYTES(part) for name, part in value.items() if part is not None}


def check_finding(raw: object) -> dict[str, Any] | None:
    """Return a prober's finding with safe text, or None when it says too little."""
    if not isinstance(raw, dict) or INVALID in raw:
        return None
    texts = {key: raw.get(key) for key in ("code", "what", "why", "fix")}
    if not all(isinstance(text, str) and text for text in texts.values()):
        return None
    severity = raw.get("severity")
    device = raw.get("device")
    return {
        "code": clean_text(str(texts["code"]), 60),
        "severity": severity if severity in ("info", "warning", "error") else "warning",
        "what": clean_text(str(texts["what"]), 600),
        "why": clean_text(str(texts["why"]), 600),
        "fix": clean_text(str(texts["fix"]), 600),
        "device": clean_text(device) if isinstance(device, str) else None,
    }
