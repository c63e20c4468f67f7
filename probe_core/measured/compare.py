"""A measured figure beside the derived one: the fraction, and what a fraction above 1 means."""

from __future__ import annotations

from probe_core.measured.store import FILE_LIMIT, figures_of, key_of, parsed
from probe_core.model.findings import finding
from probe_core.model.ids import driver_text
from probe_core.wording import clean_text, counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from probe_core.model.document import DeviceDoc, FindingDoc, MeasuredDoc, PeakDoc


ABOVE = 1.02
"""A fraction that is above 1 beyond the error of a clock: two runs of one loop differ by 1 %."""

SAME = 0.05
"""Part by which two runs of one figure may differ and still say the same."""

LEAST_RUNS = 10
"""Runs from which best and median mean something, after the warm-up."""

LOWER_BOUND = "not comparable: the derived peak is a lower bound"
NO_CLOCK = "not comparable: the clock of the run, or that of the derived peak, is not known"


def counts(figure: MeasuredDoc) -> bool:
    """Return whether a figure may be planned with: fresh, and not disturbed."""
    return figure["stale"] is None and not figure["disturbed"]


def peak_of(device: DeviceDoc, figure: MeasuredDoc) -> PeakDoc | None:
    """Return the derived peak that a figure compares with: the fastest dense one of its type.

    It has the same sums where chipdb has them. A register loop runs on the vector units: a core
    with AMX multiplies matrices of bf16 eight times as fast, with other instructions.
    """
    if figure["figure"] != "compute":
        return None
    peaks = [
        peak
        for peak in device["peaks"]
        if peak["dtype"] == figure["dtype"]
        and peak["sparsity"] == "dense"
        and (figure["kind"] != "alu" or peak["path"] == "vector")
    ]
    same = [peak for peak in peaks if peak["accumulate"] == figure.get("accumulate")]
    return max(same or peaks, key=lambda peak: peak["tflops"], default=None)


def _part(device: DeviceDoc, figure: MeasuredDoc) -> float:
    """Return the part of a CPU that took part: a peak counts all of its cores."""
    cores, threads = device["units"], figure.get("threads")
    if device["kind"] != "cpu" or not cores or not threads:
        return 1.0
    return min(1.0, threads / cores)


def with_fractions(device: DeviceDoc, figure: MeasuredDoc) -> MeasuredDoc:
    """Return the figure with its fraction of the derived peak, or of the memory bandwidth.

    At the nominal clock, which the peak is made of, and at the measured one, which alone compares
    like with like. A peak that is a lower bound compares with nothing: `unknown` says so.
    """
    result = figure.copy()
    result["fraction"] = result["fraction_at_clock"] = None
    best = figure["best"]
    if figure["figure"] != "compute":
        whole = device["bandwidth"] if figure["kind"] == "memory" else _link_bandwidth(device)
        if best is not None and whole:
            result["fraction"] = round(best / whole, 4)
        return result
    peak = peak_of(device, figure)
    if peak is None or best is None or not peak["tflops"]:
        return result
    if peak.get("bound") == "lower":
        return _incomparable(result, LOWER_BOUND)
    fraction = best / (peak["tflops"] * _part(device, figure))
    result["fraction"] = round(fraction, 4)
    nominal, clock = peak.get("mhz"), figure.get("clock_mhz")
    if nominal and clock:
        result["fraction_at_clock"] = round(fraction * nominal / clock, 4)
        return result
    return _incomparable(result, NO_CLOCK)


def _incomparable(figure: MeasuredDoc, reason: str) -> MeasuredDoc:
    figure["unknown"] = {**(figure.get("unknown") or {}), "fraction_at_clock": reason}
    return figure


def _link_bandwidth(device: DeviceDoc) -> float | None:
    """Return the bytes per second of the slowest hop to the host; None where it is not known."""
    link = next((link for link in device["links"] if link["kind"] == "pcie"), None)
    return link.get("bandwidth") if link else None


def stale_reason(device: DeviceDoc, figure: MeasuredDoc) -> str | None:
    """Return why a figure no longer counts: the driver is another one."""
    now = driver_text(device)
    before = figure["driver"]
    if now == before:
        return None
    return f"measured with driver {before or 'unknown'}; it is now {now or 'unknown'}"


def with_repeat(device: DeviceDoc, figure: MeasuredDoc) -> MeasuredDoc:
    """Return a new figure, marked where the kept one of its kind has the same result.

    Both are undisturbed, of the same driver, and of another run.
    """
    known = (f for f in device.get("measured") or () if key_of(f) == key_of(figure))
    older, now = next(known, None), figure["best"]
    if older is None or figure["disturbed"] or older["disturbed"] or not (older["best"] and now):
        return figure
    is_other = older["driver"] == figure["driver"] and older["date"] != figure["date"]
    is_same = is_other and abs(now / older["best"] - 1) <= SAME
    return {**figure, "repeated": True} if is_same else figure


def claims(figure: MeasuredDoc) -> bool:
    """Return whether a figure supports a claim: undisturbed, fresh, and of enough runs."""
    return counts(figure) and (figure["runs"] or 0) >= LEAST_RUNS


def above_peak(device: DeviceDoc, figures: list[MeasuredDoc]) -> FindingDoc | None:
    """Return the finding about a peak that a figure exceeds at the run's clock; None without one.

    Nothing computes faster than it can, so the derivation's rate is too low. Said only where it is
    so twice, undisturbed: one run can have had another clock than the one that was read.
    """
    above = [
        f
        for f in figures
        if claims(f) and f.get("repeated") and (f.get("fraction_at_clock") or 0) > ABOVE
    ]
    if not above:
        return None
    figure = max(above, key=lambda f: f.get("fraction_at_clock") or 0)
    part, clock = figure.get("fraction_at_clock") or 0.0, figure.get("clock_mhz") or 0.0
    return finding(
        "peak-exceeded",
        f"{device['id']} computes faster than its derived peak: {part:.0%} of it"
        f" at {clock:.0f} MHz, twice",
        "the rate in chipdb is too low",
        "report it: the derived peak is a lower bound",
        severity="info",
        device=device["id"],
        evidence=f"{figure['dtype'] or figure['figure']} by {figure['by']}, {figure['date']}",
    )


# Puts the figures that are kept of this node into the devices of a report.


def attach(
    devices: Iterable[DeviceDoc],
    node: str | None,
    path: str,
    read: Callable[[str, int], bytes],
) -> list[FindingDoc]:
    """Set `measured` of the devices in place; return what is wrong with the file, or the peaks.

    `read` reads at most so many bytes without hanging; it raises `OSError` or `ValueError`.
    """
    refused: list[tuple[str, str]] = []
    try:
        content = parsed(read(path, FILE_LIMIT), refused)
    except OSError as error:
        return [_unusable(path, error.strerror or str(error))]
    except ValueError as error:
        return [_unusable(path, str(error))]
    reasons = [reason for name, reason in refused if name == (node or "")]
    findings = [_refused(path, reasons)] if reasons else []
    for device in devices:
        figures = []
        for figure in figures_of(content, node, device):
            entry = with_fractions(device, figure)
            entry["stale"] = stale_reason(device, figure)
            figures.append(entry)
        if figures:
            device["measured"] = figures
            device["sources"]["measured"] = "probe bench"
            above = above_peak(device, figures)
            findings += [above] if above else []
    return findings


def _refused(path: str, reasons: list[str]) -> FindingDoc:
    count = counted(len(reasons), "measured figure")
    return _unusable(path, reasons[0], f"{count} in the file cannot be true: left out")


def _unusable(
    path: str, reason: str, problem: str = "the measured figures cannot be read"
) -> FindingDoc:
    return finding(
        "measured-unusable",
        problem,
        f"{clean_text(path, 600)}: {clean_text(reason, 400)}",
        "remove the file, or run `probe bench` again",
        severity="info",
        evidence=clean_text(path, 600),
    )
