"""Why a request cannot be met, and what would work instead: the errors of `select` and `lease`."""

from __future__ import annotations

from probe_core.model.ids import KIND_ORDER
from probe_core.selection import SelectionError
from probe_core.selection.candidates import free_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from probe_core.model.document import DeviceDoc, LeaseDoc, VisibilityDoc
    from probe_core.selection.candidates import Candidates

_SHOWN_DEVICES = 8
"""Devices that a message lists: the largest common server; `SelectionError` has them all."""

_SHOWN_NUMBERS = 16
"""Numbers that a message lists: those of the largest server with GPUs (16, DGX-2)."""

_NO_ACCELERATOR = "this node has no accelerator"
_ELSEWHERE = "run it on the CPU, or on another node"

# By the variable of an entry's `settled_by`.
_SETTLE = {"CUDA_DEVICE_ORDER": "set CUDA_DEVICE_ORDER=PCI_BUS_ID, or name devices by UUID"}


class Refusals:
    """Makes the errors of one request, in words; `choice` is what it could choose from."""

    def __init__(self, request: str, choice: Candidates) -> None:
        self.request = request
        self.choice = choice

    def error(
        self,
        unmet: str,
        code: str,
        fix: str | None = None,
        *,
        device: str | None = None,
        variable: str | None = None,
        leases: Sequence[LeaseDoc] = (),
    ) -> SelectionError:
        """Return the error, with everything that is visible and hidden in its message."""
        hidden = {name: entry["reason"] or "" for name, entry in self.choice.not_visible().items()}
        lines = [
            f"asked for {self.request}: {unmet}",
            f"{self._whose()}: {_listed(self.choice)}",
        ]
        if hidden:
            shown = [f"{name} ({reason})" for name, reason in hidden.items()]
            lines.append(f"hidden: {'; '.join(shown[:_SHOWN_DEVICES])}")
        if fix:
            lines.append(f"what would work: {fix}")
        return SelectionError(
            "\n".join(lines),
            code=code,
            asked=self.request,
            unmet=unmet,
            runtime=self.choice.runtime,
            visible=[shown_device["id"] for shown_device in self.choice.visible],
            hidden=hidden,
            fix=fix,
            device=device,
            variable=variable,
            leases=leases,
        )

    def _whose(self) -> str:
        """Return to what the devices are visible: no runtime numbers a Gaudi or an Inferentia."""
        shown, runtime = self.choice.visible, self.choice.runtime
        numbered = not shown or any(runtime in device["visibility"] for device in shown)
        return f"visible to {runtime}" if numbered else "visible"

    def syntax(self, unmet: str) -> SelectionError:
        """Return the error of a list that cannot be read."""
        return self.error(unmet, "syntax", self.numbers())

    def unknown(self, unmet: str) -> SelectionError:
        """Return the error of a name or number that no device has."""
        return self.error(unmet, "unknown", self.numbers())

    def not_shown(self, entry: str, device: str) -> SelectionError:
        """Return the error of a named device that is hidden, or may be."""
        is_hidden = device in self.choice.hidden
        view = self.choice.not_visible()[device]
        return self.error(
            f"{entry!a}{' is hidden' if is_hidden else ''}: {view['reason']}",
            "hidden" if is_hidden else "uncertain",
            self._remedy([device]),
            device=device,
            variable=_variable([view]),
        )

    def unordered(self, number: str) -> SelectionError:
        """Return the error of a number that only the driver can tell the device of."""
        views = [*self.choice.uncertain.values(), *self.choice.unordered.values()]
        reason = views[0]["reason"] or "the order is known to the driver alone"
        return self.error(
            f"which device is number {number} is not known: {reason}",
            "uncertain",
            remedy(views) or "name devices by id",
            variable=_variable(views),
        )

    def of_several(self, number: str, devices: Sequence[str]) -> SelectionError:
        """Return the error of a number that a device of each vendor has, or may have."""
        return self.error(
            f"{self.choice.runtime} numbers each vendor's devices apart: number {number} may be any"
            f" of {', '.join(devices)}",
            "uncertain",
            "name devices by id",
        )

    def too_few(self, usable: Sequence[DeviceDoc], count: int, least: int | None) -> SelectionError:
        """Return the error of `count` devices with `least` bytes free, where `usable` are had."""
        choice, hidden = self.choice, self.choice.not_visible()
        if not choice.accelerators:
            return self.error(_NO_ACCELERATOR, "too-few", _ELSEWHERE)
        if least is not None and len(choice.visible) >= count:
            return self._too_little(usable, count)
        way = self._remedy(hidden)
        fix = f"ask for {len(usable)}" if usable else way
        if usable and len(choice.accelerators) >= count and way:
            # The fix of a finding is a sentence: "nothing, if that is intended; else …".
            fix = f"{fix}, or {way}" if remedy(hidden.values()) else f"{fix}; for the others: {way}"
        unmet = f"only {len(usable)} device{'s' * (len(usable) != 1)} can be had"
        code = "too-few" if choice.visible else "hidden"
        return self.error(unmet, code, fix, variable=_variable(hidden.values()))

    def of_several_kinds(self, usable: Sequence[DeviceDoc]) -> SelectionError:
        """Return the error of a count that the devices of no kind reach alone."""
        kinds = sorted((device["kind"] for device in usable), key=KIND_ORDER.__getitem__)
        most = max(kinds, key=kinds.count)
        number = kinds.count(most)
        return self.error(
            f"only {number} of kind {most} can be had, and a count takes devices of one kind",
            "too-few",
            f"ask for {number}, or name the devices",
        )

    def _too_little(self, usable: Sequence[DeviceDoc], count: int) -> SelectionError:
        from probe_core.sizes import format_size

        amounts = sorted((free_memory(device) or 0 for device in self.choice.visible), reverse=True)
        # What the device that would be the last one taken has: all the others have more.
        smallest = amounts[count - 1]
        unknown = sum(free_memory(device) is None for device in self.choice.visible)
        have = "are known to have" if unknown else "have"
        reason = f" ({unknown} of unknown memory)" if unknown else ""
        return self.error(
            f"only {len(usable)} of the visible devices {have} that much memory free{reason}",
            "memory",
            f"ask for {format_size(smallest)} each" if smallest else None,
        )

    def none_usable(self, least: int | None) -> SelectionError:
        """Return the error of a request for any device where there is none."""
        hidden = self.choice.not_visible()
        if self.choice.visible or not hidden:
            return self.too_few([], 1, least)
        variable = _variable(hidden.values())
        return self.error("no device is visible", "hidden", self._remedy(hidden), variable=variable)

    def lacks_memory(self, device: DeviceDoc, least: int) -> SelectionError:
        """Return the error of a named device that has less than `least` bytes free."""
        from probe_core.sizes import format_size

        free = free_memory(device)
        amount = "an unknown amount" if free is None else format_size(free)
        roomy = [other for other in self.choice.visible if (free_memory(other) or 0) >= least]
        return self.error(
            f"{device['id']} has {amount} free",
            "memory",
            f"{roomy[0]['id']} has enough" if roomy else None,
            device=device["id"],
        )

    def numbers(self) -> str | None:
        """Return the numbers that exist, or how to get at a device where there is none."""
        choice = self.choice
        if not choice.visible:
            return self._remedy(choice.not_visible())
        return "one of " + ", ".join(map(choice.word_for, choice.visible[:_SHOWN_NUMBERS]))

    def _remedy(self, devices: Iterable[str]) -> str | None:
        """Return how these devices could be had: by a variable, or as a finding about one tells."""
        names = list(devices)
        entries = self.choice.not_visible()
        by_variable = remedy(entries[name] for name in names)
        fixes = self.choice.fixes
        return by_variable or next((fixes[name] for name in names if name in fixes), None)


def remedy(entries: Iterable[VisibilityDoc]) -> str | None:
    """Return how devices that are not surely shown could be had; None where nothing is known."""
    views = list(entries)
    for view in views:
        if view.get("settled_by") in _SETTLE:
            return _SETTLE[view["settled_by"]]
    variable = _variable(views)
    return f"change or unset {variable}" if variable else None


def _variable(entries: Iterable[VisibilityDoc]) -> str | None:
    return next((variable for view in entries if (variable := view.get("variable"))), None)


def _listed(choice: Candidates) -> str:
    shown = [
        f"{'?' if device['id'] in choice.unordered else choice.indexes.get(device['id'], at)}:"
        f" {_named(device)}"
        for at, device in enumerate(choice.visible[:_SHOWN_DEVICES])
    ]
    unlisted = len(choice.visible) - len(shown)
    return ("; ".join(shown) or "nothing") + (f" and {unlisted} more" if unlisted else "")


def _named(device: DeviceDoc) -> str:
    return f"{device['name']} ({device['id']})" if device["name"] else device["id"]
