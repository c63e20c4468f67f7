"""One runtime's view of the devices: what it shows, in which order, and why not the others."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from probe_core.model.document import ViewDoc, VisibilityDoc
    from probe_core.visibility.availability import Available, Withheld

_SHOWN_VALUE = 60
"""Characters of a variable's value in a sentence: a whole UUID with its prefix has 40."""


_NONE = ("-1", "NoDevFiles")
"""Values that mean no device: what programs set to run without a GPU, and what batch systems give
a job that requested none."""


def quoted(value: str) -> str:
    """Return a variable's value fit for a sentence: any bytes, at most 60 characters."""
    text = value if len(value) <= _SHOWN_VALUE else value[: _SHOWN_VALUE - 3] + "..."
    return ascii(text)


class Mask:
    """What a variable's value leaves of an ordered list of devices.

    `ids` are the devices left, in the runtime's order. `reason` says why every other device is
    hidden, `reasons` why single ones are that the variable does not hide, `codes` a word for that.
    `code` names what is wrong with the value (a finding's code) and `detail` says it in a sentence;
    both are None for a value without fault. `maybe` maps devices that only the driver can decide
    on to why.
    """

    __slots__ = ("code", "codes", "detail", "ids", "maybe", "reason", "reasons")

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
        self.codes: dict[str, str] = {}
        self.maybe: dict[str, str] = {}

    @classmethod
    def stopped(cls, ids: Sequence[str], runtime: str, assignment: str, entry: str) -> Mask:
        """Return the mask of a list that `runtime` reads up to the bad `entry`.

        `assignment` is the variable with its value, as it stands in a sentence. Of a value that is
        the usual word for no device nothing goes wrong: it has the effect that it suggests.
        """
        detail = f"{assignment}: {runtime} stops reading at {quoted(entry)}"
        reason = f"{detail}, and it is not named before that"
        is_meant = entry in _NONE and assignment.endswith(f"={quoted(entry)}")
        return cls(ids, reason, code=None if is_meant else "variable-stops-at", detail=detail)

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
    something else hides, each with the reason and, where it is one, the variable. `withheld`: those
    that this process cannot use through this runtime; one that takes a number stands in `masks`.
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
        "withheld",
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
        self.withheld: dict[str, Withheld] = {}
        self.complete = True
        """Whether `masks` are all possible results; else they are examples, and none is listed."""

    def withhold(self, available: Available, pool: Iterable[str]) -> None:
        """Add those of `pool` that are withheld from this process, and the doubt about numbers."""
        if not available.withheld:
            return
        own = dict.fromkeys(pool)
        names = [*self.pool, *(name for name in available.withheld if name in own)]
        self.pool = list(dict.fromkeys(names))
        self.withheld |= {name: entry for name, entry in available.withheld.items() if name in own}
        self.masks = _distinct(self.masks)
        if any(entry.counted is None for entry in self.withheld.values()):
            self.uncertain = available.uncertain
            self.complete = self.complete and available.complete()

    def follow(self, below: View) -> None:
        """Hide and withhold what the runtime below does, on which this one is built."""
        possible = below.possible
        for name in below.pool:
            if name not in possible:
                entry = below.entry(name)
                self.reasons[name] = (entry["reason"] or "", entry.get("variable"))
        self.withhold_as(below)

    def withhold_as(self, below: View) -> None:
        """Withhold what the runtime below withholds."""
        if not below.withheld:
            return
        self.withheld |= below.withheld
        self.masks = _distinct(self.masks)
        self.complete = self.complete and below.complete
        self.uncertain = self.uncertain or below.uncertain

    @property
    def certain(self) -> bool:
        """Whether visibility and order are known without asking the driver."""
        if len(self.masks) != 1 or self.masks[0].maybe:
            return False
        return all(entry.visible is False for entry in self.withheld.values())

    @property
    def visible(self) -> list[str]:
        """Ids of the devices that are surely shown, in the runtime's order where it is known."""
        first, *alternatives = self.masks
        return [
            name
            for name in dict.fromkeys(first.ids)
            if name not in self.withheld and all(name in mask.ids for mask in alternatives)
        ]

    @property
    def possible(self) -> list[str]:
        """Ids of the devices that may be shown: at least the visible ones."""
        possible = dict.fromkeys(i for mask in self.masks for i in (*mask.ids, *mask.maybe))
        if not self.withheld:
            return list(possible)
        return [name for name in possible if not self._is_withheld_surely(name)]

    def _is_withheld_surely(self, name: str) -> bool:
        entry = self.withheld.get(name)
        return entry is not None and entry.visible is False

    def entries(self) -> dict[str, VisibilityDoc]:
        """Return the report's entries of the pool: each device's as `entry` gives it."""
        if len(self.masks) > 1 or self.withheld:
            return {name: self.entry(name) for name in self.pool}
        # Nearly every view: the places are read once, not searched again for each of 64 devices.
        (mask,) = self.masks
        places: dict[str, int] = {}
        for place, name in enumerate(mask.ids):
            places.setdefault(name, place)
        return {
            name: self._shown(places[name]) if name in places else self._by_mask(mask, name)
            for name in self.pool
        }

    def entry(self, device: str) -> VisibilityDoc:
        """Return the report's ``visibility`` entry of one device of the pool."""
        masks = self.masks
        withheld = self.withheld.get(device)
        if withheld is not None and (withheld.visible is False or device in self.possible):
            return self._not_given(withheld)
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
        entry: VisibilityDoc = {
            "visible": False,
            "index": None,
            "reason": reason,
            "variable": variable,
            "step": "visible",
        }
        code = mask.codes.get(device) or ("hidden-by-variable" if variable else None)
        if code is not None:
            entry["code"] = code
        return entry

    def _not_given(self, withheld: Withheld) -> VisibilityDoc:
        entry: VisibilityDoc = {
            "visible": withheld.visible,
            "index": None,
            "reason": withheld.reason,
            "variable": None,
            "step": withheld.step,
        }
        if withheld.code is not None:
            entry["code"] = withheld.code
        return entry

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
            "visible": self._shown_by(self.masks[0]) if self.certain else self.visible,
            "hidden": {i: self.entry(i)["reason"] for i in self.pool if i not in possible},
            "variable": self.variable,
            "value": self.value,
            "certain": self.certain,
        }
        if not self.certain:
            document["uncertain"] = self.uncertain or next(self._doubts(), None)
            document["possible"] = possible
            if self.complete and len(self.masks) > 1:
                document["one_of"] = [self._shown_by(mask) for mask in self.masks]
        return document

    def _shown_by(self, mask: Mask) -> list[str]:
        """Return what a mask shows, with what it shows twice."""
        return [name for name in mask.ids if not self._is_withheld_surely(name)]

    def _doubts(self) -> Iterator[str]:
        yield from self.masks[0].maybe.values()
        yield from (entry.reason for entry in self.withheld.values() if entry.visible is None)


def _distinct(masks: Sequence[Mask]) -> list[Mask]:
    """Return the masks without those that show what an earlier one does."""
    results: dict[tuple[str, ...], Mask] = {}
    for mask in masks:
        results.setdefault((*mask.ids, "", *mask.maybe), mask)
    return list(results.values())
