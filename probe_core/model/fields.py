"""A device's fields, each with its check: what a value must be to be believed."""

from __future__ import annotations

from probe_core.model.ids import normalise_id
from probe_core.model.kinds import KINDS
from probe_core.unencodable import INVALID
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Check = Callable[[Any], Any]

__all__ = ["FIELDS", "KINDS", "MAX_IDS", "MAX_MEMORY", "MIB", "Rejected", "reason_of", "shown"]

MIB = 1 << 20
MAX_MEMORY = 64 << 40
MAX_IDS = 64


class Rejected(ValueError):
    """A value that cannot be true; the message says why."""


def reason_of(value: dict[str, Any]) -> str:
    """Return why the encoder marked a value as none of JSON's."""
    return str(value.get(INVALID, "a table"))


def shown(value: object) -> str:
    """Return a value for a sentence."""
    if isinstance(value, dict):
        return clean_text(reason_of(value), 200)
    return clean_text(f"{type(value).__name__} {value!r}", 80)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Rejected(f"expected text, found {shown(value)}")
    text = clean_text(value).strip()
    if not text:
        raise Rejected("it is empty")
    return text


def _word(value: Any) -> str:
    return _text(value).lower()


def _number(low: float, high: float, *, whole: bool = False) -> Check:
    def check(value: Any) -> Any:
        if type(value) not in (int, float):
            raise Rejected(f"expected a number, found {shown(value)}")
        if not low <= value <= high:
            text = f"{value:.6g}" if isinstance(value, float) else clean_text(str(value), 40)
            raise Rejected(f"{text} is not between {low:.6g} and {high:.6g}")
        if whole and value != int(value):
            raise Rejected(f"expected a whole number, found {value}")
        return int(value) if whole else value

    return check


def _list(check: Check, limit: int = MAX_IDS) -> Check:
    def check_list(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise Rejected(f"expected a list, found {shown(value)}")
        if len(value) > limit:
            raise Rejected(f"more than {limit} entries")
        return [check(item) for item in value]

    return check_list


def _ids(value: Any) -> list[str]:
    if not isinstance(value, list) or not value:
        raise Rejected(f"expected a list of ids, found {shown(value)}")
    ids = list(dict.fromkeys(_id(item) for item in value[:MAX_IDS]))
    addresses = [one for one in ids if one.startswith("pci:")]
    if len(addresses) > 1:  # it would make two devices of others into one
        raise Rejected(f"one device has one PCI address, found {', '.join(addresses)}")
    return ids


def _id(value: Any) -> str:
    if not isinstance(value, str):
        raise Rejected(f"an id must be text, found {shown(value)}")
    try:
        return normalise_id(value)
    except ValueError as error:
        raise Rejected(clean_text(str(error))) from None


def _kind(value: Any) -> str:
    if value not in KINDS:
        raise Rejected(f"expected one of {', '.join(KINDS)}, found {shown(value)}")
    return str(value)


def _choice(*choices: str) -> Check:
    def check(value: Any) -> str:
        if value not in choices:
            raise Rejected(f"expected one of {', '.join(choices)}, found {shown(value)}")
        return str(value)

    return check


def _link(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or INVALID in value:
        raise Rejected(f"a link must be a table, found {shown(value)}")
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
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 64:
            raise Rejected("a whole number beyond 64 bits")
        return value
    if isinstance(value, float):
        if value - value != 0.0:
            raise Rejected(f"{value} is not finite")
        return value
    if not isinstance(value, (dict, list, tuple)):
        raise Rejected(f"not plain data: {shown(value)}")
    if depth >= 4 or INVALID in value or len(value) > MAX_IDS:
        raise Rejected(f"not small plain data: {shown(value)}")
    if isinstance(value, dict):
        return {clean_text(k, 80): _free(v, depth + 1) for k, v in value.items()}
    return [_free(v, depth + 1) for v in value]


def _free_table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Rejected(f"expected a table, found {shown(value)}")
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
        raise Rejected(f"expected a table of bytes, found {shown(value)}")
    return {clean_text(name, 40): _BYTES(part) for name, part in value.items() if part is not None}
