"""A measured figure beside the derived one: the fraction, and what a fraction above 1 means."""

from __future__ import annotations

from probe_core.measured.store import FILE_LIMIT, figures_of, parsed
from probe_core.model.ids import driver_text
from probe_core.model.parts import finding
from probe_core.wording import clean_text, counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from probe_core.model.document import DeviceDoc, FindingDoc, MeasuredDoc, PeakDoc


ABOVE = 1.02
"""A fraction that is above 1 beyond the error of a clock: two runs of one loop differ by 1 %."""


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

    At the nominal clock, which the peak is made of, and at the measured one.
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
    fraction = best / (peak["tflops"] * _part(device, figure))
    result["fraction"] = round(fraction, 4)
    nominal, clock = peak.get("mhz"), figure.get("clock_mhz")
    if nominal and clock:
        result["fraction_at_clock"] = round(fraction * nominal / clock, 4)
    return result


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


def above_peak(device: DeviceDoc, figures: list[MeasuredDoc]) -> FindingDoc | None:
    """Return the finding about a peak that a fresh figure exceeds; None where none does.

    Nothing computes faster than it can: the derivation's clock, or its rate, is too low.
    """
    above = [f for f in figures if f["stale"] is None and (f.get("fraction") or 0) > ABOVE]
    if not above:
        return None
    figure = max(above, key=lambda f: f.get("fraction") or 0)
    peak = peak_of(device, figure)
    return finding(
        "peak-exceeded",
        f"{device['id']} computes faster than its derived peak: {figure['fraction']:.0%} of it",
        _explanation(figure, peak),
        "compare with the fraction at the measured clock; the derived peak is a lower bound",
        severity="info",
        device=device["id"],
        evidence=f"{figure['dtype'] or figure['figure']} by {figure['by']}, {figure['date']}",
    )


def _explanation(figure: MeasuredDoc, peak: PeakDoc | None) -> str:
    if peak is None:
        return "the memory bandwidth that the report derives is too low"
    nominal, clock = peak.get("mhz"), figure.get("clock_mhz")
    at_clock = figure.get("fraction_at_clock")
    if nominal is None or clock is None or at_clock is None:
        return f"the derivation rests on its {peak['clock']} clock, and the run's is not known"
    if at_clock > ABOVE and figure["disturbed"]:
        return (
            f"the derivation rests on {nominal:.0f} MHz ({peak['clock']});"
            f" other load disturbed the run's, {clock:.0f} MHz"
        )
    if at_clock > ABOVE:
        return f"also at the run's {clock:.0f} MHz: the rate in chipdb is too low"
    return (
        f"the derivation rests on {nominal:.0f} MHz ({peak['clock']}), the run had {clock:.0f} MHz"
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
