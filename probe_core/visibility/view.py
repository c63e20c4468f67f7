"""One runtime's view of the devices: what it shows, in which order, and why not the others."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from probe_core.model.document import ViewDoc, VisibilityDoc

__all__ = ["Mask", "View", "quoted"]

_SHOWN_VALUE = 60
"""Characters of a variable's value in a sentence: a whole UUID with its prefix has 40."""


def quoted(value: str) -> str:
    """Return a variable's value fit for a sentence: any bytes, at most 60 characters."""
    text = value if len(value) <= _SHOWN_VALUE else value[: _SHOWN_VALUE - 3] + "..."
    return ascii(text)


class Mask:
    """What a variable's value leaves of an ordered list of devices.

    `ids` are the devices left, in the runtime's order. `reason` says why every other device is
    hidden, `reasons` why single ones are that the variable does not hide. `code` names what is
    wrong with the value (a finding's code) and `detail` says it in a sentence; both are None for
    a value without fault. `maybe` maps devices that only the driver can decide on to why.
    """

    __slots__ = ("code", "detail", "ids", "maybe", "reason", "reasons")

    def __init__(
        self,
        ids: Sequence[str],
        reason: str = "",
        *,
        code: str | None = None,
        detail: str | None = None,
    ) -> None:
        self.ids = list(ids)
        self.reason = reason
        self.code = code
        self.detail = detail
        self.reasons: dict[str, str] = {}
        self.maybe: dict[str, str] = {}

    @classmethod
    def stopped(cls, ids: Sequence[str], runtime: str, assignment: str, entry: str) -> Mask:
        """Return the mask of a list that `runtime` reads up to the bad `entry`.

        `assignment` is the variable with its value, as it stands in a sentence.
        """
        detail = f"{assignment}: {runtime} stops reading at {quoted(entry)}"
        reason = f"{detail}, and it is not named before that"
        return cls(ids, reason, code="variable-stops-at", detail=detail)

    @classmethod
    def broken(cls, detail: str, code: str = "variable-breaks") -> Mask:
        """Return the mask of a value with which the runtime shows nothing at all."""
        return cls([], detail, code=code, detail=detail)

    @classmethod
    def empty(cls, variable: str) -> Mask:
        """Return the mask of a variable that is set to nothing, for runtimes that then hide all."""
        return cls([], f"{variable} is empty, which hides every device", code="variable-empty")


class View:
    """What one runtime shows.

    `runtime`: its name (``cuda``). `pool`: ids of all devices that it could ever show, hidden or
    not. `variable` and `value`: what decided (None: nothing is set). `masks`: the possible
    results, more than one where only the driver knows; `uncertain` then says why, and
    `settled_by` names the variable that would settle it. `reasons`: devices of the pool that
    something else hides, each with the reason and, where it is one, the variable.
    """

    __slots__ = (
        "complete",
        "masks",
        "pool",
        "reasons",
        "runtime",
        "settled_by",
        "uncertain",
        "value",
        "variable",
    )

    def __init__(
        self,
        runtime: str,
        pool: Iterable[str],
        masks: Sequence[Mask],
        *,
        variable: str | None = None,
        value: str | None = None,
        uncertain: str | None = None,
    ) -> None:
        self.runtime = runtime
        self.pool = list(pool)
        self.masks = list(masks)
        self.variable = variable
        self.value = value
        self.uncertain = uncertain
        self.settled_by: str | None = None
        self.reasons: dict[str, tuple[str, str | None]] = {}
        self.complete = True
        """Whether `masks` are all possible results; else they are examples, and none is listed."""

    def exclude(self, reasons: dict[str, str]) -> None:
        """Add devices to the pool that no variable hides, each with the reason that does."""
        for name, reason in reasons.items():
            self.pool.append(name)
            self.reasons[name] = (reason, None)

    @property
    def certain(self) -> bool:
        """Whether visibility and order are known without asking the driver."""
        return len(self.masks) == 1 and not self.masks[0].maybe

    @property
    def visible(self) -> list[str]:
        """Ids of the devices that are surely shown, in the runtime's order where it is known."""
        first, *alternatives = self.masks
        return [i for i in _unique(first.ids) if all(i in mask.ids for mask in alternatives)]

    @property
    def possible(self) -> list[str]:
        """Ids of the devices that may be shown: at least the visible ones."""
        return _unique([i for mask in self.masks for i in (*mask.ids, *mask.maybe)])

    def entry(self, device: str) -> VisibilityDoc:
        """Return the report's ``visibility`` entry of one device of the pool."""
        masks = self.masks
        if device not in self.pool or len(masks) == 1:
            return self._by_mask(masks[0], device)
        indexes = [mask.ids.index(device) if device in mask.ids else None for mask in masks]
        if all(index is None for index in indexes):
            return self._by_mask(masks[0], device)
        if len(set(indexes)) == 1:
            return self._shown(indexes[0])
        entry = self._unsure(None if None in indexes else True, self.uncertain)
        if self.complete:
            entry["one_of"] = sorted({index for index in indexes if index is not None})
        return entry

    def _by_mask(self, mask: Mask, device: str) -> VisibilityDoc:
        if device in mask.ids:
            return self._shown(mask.ids.index(device))
        if device in mask.maybe:
            return self._unsure(None, mask.maybe[device])
        reason, variable = mask.reason, self.variable
        if device in self.reasons:
            reason, variable = self.reasons[device]
        elif device in mask.reasons:
            reason, variable = mask.reasons[device], None
        return {"visible": False, "index": None, "reason": reason, "variable": variable}

    def _shown(self, index: int | None) -> VisibilityDoc:
        return {"visible": True, "index": index, "reason": None, "variable": self.variable}

    def _unsure(self, visible: bool | None, reason: str | None) -> VisibilityDoc:
        entry: VisibilityDoc = {
            "visible": visible,
            "index": None,
            "reason": reason,
            "variable": self.variable,
        }
        if self.settled_by is not None:
            entry["settled_by"] = self.settled_by
        return entry

    def as_json(self) -> ViewDoc:
        """Return the view as plain data: ordered ids, what decided, and why others are hidden."""
        possible = self.possible
        document: ViewDoc = {
            "visible": self.masks[0].ids[:] if self.certain else self.visible,
            "hidden": {i: self.entry(i)["reason"] for i in self.pool if i not in possible},
            "variable": self.variable,
            "value": self.value,
            "certain": self.certain,
        }
        if not self.certain:
            reasons = self.masks[0].maybe.values()
            document["uncertain"] = self.uncertain or next(iter(reasons), None)
            document["possible"] = possible
            if self.complete and len(self.masks) > 1:
                document["one_of"] = [mask.ids[:] for mask in self.masks]
        return document


def _unique(items: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(items))
