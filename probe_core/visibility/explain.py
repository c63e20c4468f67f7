"""Turns views into findings: which variable hides which device, and which values go wrong."""

from __future__ import annotations

from probe_core.model.findings import finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.model.document import FindingDoc, Severity
    from probe_core.visibility.view import View

__all__ = ["explain"]

# What acts on containers yet to be started hides nothing from this process.
_ELSEWHERE = ("nvidia-container",)

_FIXES = {
    "variable-empty": "unset {name}, or name the devices in it",
    "variable-stops-at": "name devices that exist, comma-separated without blanks: as UUIDs "
    "(probe --json shows them) they stay right when the order changes",
    "variable-duplicate": "name each device once in {name}",
    "variable-skips": "remove the entry from {name}, or write a number that exists",
    "variable-breaks": "correct {name}, or unset it",
    "order-unknown": "set CUDA_DEVICE_ORDER=PCI_BUS_ID, or name the devices by UUID",
}


def explain(views: Mapping[str, Sequence[View]]) -> list[FindingDoc]:
    """Return the findings of all views: one for each variable and device, or fault of a value."""
    hidden: dict[tuple[str, str], tuple[str, list[str]]] = {}
    faults: dict[tuple[str, str], FindingDoc] = {}
    for consumer, several in views.items():
        if consumer in _ELSEWHERE:
            continue
        for view in several:
            _collect_hidden(hidden, view)
            _collect_faults(faults, view)
    said = [
        _finding(
            "hidden-by-variable",
            f"{device} is hidden from {', '.join(who)}",
            why,
            name,
            device=device,
        )
        for (name, device), (why, who) in hidden.items()
    ]
    return [*faults.values(), *said]


def _collect_hidden(hidden: dict[tuple[str, str], tuple[str, list[str]]], view: View) -> None:
    for device in view.pool:
        entry = view.entry(device)
        if entry["visible"] is False and entry["variable"] is not None:
            _, who = hidden.setdefault((entry["variable"], device), (entry["reason"], []))
            if view.consumer not in who:
                who.append(view.consumer)


def _collect_faults(faults: dict[tuple[str, str], FindingDoc], view: View) -> None:
    mask = view.masks[0]
    if mask.code is not None and mask.code != "variable-empty" and view.variable is not None:
        key = (mask.code, view.variable)
        what = f"{view.variable} does not do what it says"
        why = mask.detail or mask.why
        faults.setdefault(key, _finding(mask.code, what, why, view.variable, "warning"))
    unsure = [name for name in view.pool if view.entry(name)["visible"] is None]
    if unsure and view.consumer == "cuda":
        why = view.uncertain or next(iter(mask.maybe.values()), "")
        what = f"which GPUs CUDA shows is not known: one of {', '.join(unsure)}"
        key = ("order-unknown", "CUDA_DEVICE_ORDER")
        faults[key] = _finding("order-unknown", what, why, "CUDA_DEVICE_ORDER", "warning")


def _finding(
    code: str,
    what: str,
    why: str,
    variable: str,
    severity: Severity = "info",
    device: str | None = None,
) -> FindingDoc:
    fix = _FIXES.get(code, "unset {name}, or name the device in it, if the process may use it")
    return finding(
        code,
        what,
        why,
        fix.format(name=variable),
        severity=severity,
        device=device,
        variable=variable,
        step="visible",
    )
