"""One consumer's sight of the devices: what it sees, in which order, and why not the others."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

__all__ = ["Mask", "View", "decided", "quoted"]


def quoted(value: str) -> str:
    """Return a variable's value fit for a sentence: any bytes, at most 60 characters."""
    shown = value if len(value) <= 60 else value[:57] + "..."
    return ascii(shown)


class Mask:
    """What a variable's value leaves of an ordered list of devices.

    `ids` are the devices left, in the consumer's order. `why` tells for every other device why it
    is hidden, `reasons` for single ones. `code` names what is wrong with the value (a finding's
    code) and `detail` says it in a sentence; both are None for a value without fault.
    `maybe` holds devices of which nothing but the driver can say whether they are seen.
    """

    __slots__ = ("code", "detail", "ids", "maybe", "reasons", "why")

    def __init__(
        self,
        ids: Sequence[str],
        why: str = "",
        *,
        code: str | None = None,
        detail: str | None = None,
    ) -> None:
        self.ids = list(ids)
        self.why = why
        self.code = code
        self.detail = detail
        self.reasons: dict[str, str] = {}
        self.maybe: dict[str, str] = {}


class View:
    """What one consumer sees.

    `consumer`: its name (``cuda``). `pool`: ids of all devices that it could ever see, hidden
    or not. `variable` and `value`: what decided (None: nothing is set). `masks`: the possible
    results, more than one where only the driver knows; `uncertain` then says why.
    """

    __slots__ = (
        "complete",
        "consumer",
        "masks",
        "pool",
        "reasons",
        "uncertain",
        "value",
        "variable",
    )

    def __init__(
        self,
        consumer: str,
        pool: Sequence[str],
        masks: Sequence[Mask],
        *,
        variable: str | None = None,
        value: str | None = None,
        uncertain: str | None = None,
    ) -> None:
        self.consumer = consumer
        self.pool = list(pool)
        self.masks = list(masks)
        self.variable = variable
        self.value = value
        self.uncertain = uncertain
        self.reasons: dict[str, tuple[str, str | None]] = {}
        self.complete = True
        """Whether `masks` are all possible results; else they are examples, and none is listed."""

    @property
    def certain(self) -> bool:
        """Whether visibility and order are known without asking the driver."""
        return len(self.masks) == 1 and not self.masks[0].maybe

    @property
    def visible(self) -> list[str]:
        """Ids of the devices that are surely seen, in the consumer's order where it is known."""
        first, *others = self.masks
        return [i for i in _once(first.ids) if all(i in mask.ids for mask in others)]

    @property
    def possible(self) -> list[str]:
        """Ids of the devices that may be seen: at least the visible ones."""
        found = [i for mask in self.masks for i in (*mask.ids, *mask.maybe)]
        return _once(found)

    def entry(self, device: str) -> dict[str, Any]:
        """Return the report's ``visibility`` entry of one device of the pool."""
        masks = self.masks
        if device not in self.pool or len(masks) == 1:
            return self._known(masks[0], device)
        indexes = [mask.ids.index(device) if device in mask.ids else None for mask in masks]
        if all(index is None for index in indexes):
            return self._known(masks[0], device)
        seen = None if None in indexes else True
        if len(set(indexes)) == 1:
            return self._entry(True, indexes[0], None)
        entry = self._entry(seen, None, self.uncertain)
        if self.complete:
            entry["one_of"] = sorted({index for index in indexes if index is not None})
        return entry

    def _known(self, mask: Mask, device: str) -> dict[str, Any]:
        if device in mask.ids:
            return self._entry(True, mask.ids.index(device), None)
        if device in mask.maybe:
            return self._entry(None, None, mask.maybe[device])
        if device in self.reasons:
            reason, variable = self.reasons[device]
            return self._entry(False, None, reason) | {"variable": variable}
        return self._entry(False, None, mask.reasons.get(device) or mask.why)

    def _entry(self, visible: bool | None, index: int | None, reason: str | None) -> dict[str, Any]:
        return {"visible": visible, "index": index, "reason": reason, "variable": self.variable}

    def as_json(self) -> dict[str, Any]:
        """Return the view as plain data: ordered ids, what decided, and each hidden one's why."""
        hidden = {i: self.entry(i)["reason"] for i in self.pool if i not in self.possible}
        shown = self.masks[0].ids if self.certain else self.visible
        said: dict[str, Any] = {"visible": list(shown), "hidden": hidden}
        said |= {"variable": self.variable, "value": self.value, "certain": self.certain}
        if not self.certain:
            said["uncertain"] = self.uncertain or next(iter(self.masks[0].maybe.values()), None)
            said["possible"] = self.possible
            if self.complete and len(self.masks) > 1:
                said["one_of"] = [list(mask.ids) for mask in self.masks]
        return said


def _once(items: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(items))


def decided(environ: Mapping[str, str], *names: str) -> tuple[str | None, str | None]:
    """Return the first of the variables that is set, and its value; (None, None) when none is."""
    for name in names:
        if name in environ:
            return name, environ[name]
    return None, None
