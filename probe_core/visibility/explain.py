"""Turns views into findings: which variable hides which device, and which values go wrong."""

from __future__ import annotations

from probe_core.model.findings import finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from probe_core.model.document import FindingDoc
    from probe_core.visibility.view import View

# What acts on containers yet to be started hides nothing from this process.
_NOT_THIS_PROCESS = ("nvidia-container",)

_FIXES = {
    "hidden-by-variable": "unset {name}, or name the device in it, if the process may use it",
    "variable-stops-at": "name devices that exist, comma-separated without blanks: as UUIDs "
    "(probe --json shows them) they stay right when the order changes",
    "variable-duplicate": "name each device once in {name}",
    "variable-skips": "remove the entry from {name}, or write a number that exists",
    "variable-breaks": "correct {name}, or unset it",
}
_SETTLE = "set CUDA_DEVICE_ORDER=PCI_BUS_ID, or name the devices by UUID"
_NAME_BY_UUID = "name the devices by UUID"


class _Hidden:
    """A device that a variable hides: the reason, and the runtimes that it is hidden from."""

    __slots__ = ("reason", "runtimes")

    def __init__(self, reason: str) -> None:
        self.reason = reason
        self.runtimes: list[str] = []


def explain(views: Mapping[str, Sequence[View]]) -> list[FindingDoc]:
    """Return the findings of all views: one for each variable and device, or fault of a value."""
    hidden: dict[tuple[str, str], _Hidden] = {}
    faults: dict[tuple[str, str | None], FindingDoc] = {}
    for runtime, platforms in views.items():
        if runtime in _NOT_THIS_PROCESS:
            continue
        for view in platforms:
            _collect_hidden(hidden, view)
            for fault in _faults(view):
                faults.setdefault((fault["code"], fault["variable"]), fault)
    return [
        *faults.values(),
        *(_hidden_finding(*key, device) for key, device in hidden.items()),
    ]


def _collect_hidden(hidden: dict[tuple[str, str], _Hidden], view: View) -> None:
    for device in view.pool:
        entry = view.entry(device)
        variable = entry.get("variable")
        if entry["visible"] is False and variable is not None:
            record = hidden.setdefault((variable, device), _Hidden(entry["reason"] or ""))
            if view.runtime not in record.runtimes:
                record.runtimes.append(view.runtime)


def _hidden_finding(variable: str, device: str, hidden: _Hidden) -> FindingDoc:
    return finding(
        "hidden-by-variable",
        f"{device} is hidden from {', '.join(hidden.runtimes)}",
        hidden.reason,
        _FIXES["hidden-by-variable"].format(name=variable),
        severity="info",
        device=device,
        variable=variable,
        step="visible",
        evidence=hidden.reason,
    )


def _faults(view: View) -> Iterator[FindingDoc]:
    mask = view.masks[0]
    # A variable that is set to nothing is meant: what it hides is said for each device.
    code = mask.code if mask.code != "variable-empty" else None
    if code is not None and view.variable is not None and not _names_withheld(view):
        yield finding(
            code,
            f"{view.variable} does not have the effect that its value suggests",
            mask.detail or mask.reason,
            _FIXES[code].format(name=view.variable),
            variable=view.variable,
            step="visible",
            evidence=mask.detail or mask.reason,
        )
    # Of one that is withheld, as a lost GPU is, the finding about its broken step has the repair.
    own = (name for name in view.pool if name not in view.withheld)
    unsure = [name for name in own if view.entry(name)["visible"] is None]
    if unsure and view.runtime == "cuda":
        yield finding(
            "order-unknown",
            f"which GPUs CUDA shows is not known: one of {', '.join(unsure)}",
            view.uncertain or next(iter(mask.maybe.values()), ""),
            _SETTLE if view.settled_by else _NAME_BY_UUID,
            variable=view.settled_by or view.variable,
            step="visible",
        )


def _names_withheld(view: View) -> bool:
    """Return whether a value's numbers name nothing only because no device here can be used.

    Slurm and Ray set them in each job. What broke has a finding of its own, and the repair.
    """
    numbers = (view.value or "").split(",")
    is_plain = all(entry.isdecimal() and int(entry[:9]) < len(view.pool) for entry in numbers)
    return is_plain and view.withheld.keys() >= set(view.pool)
