"""A report in a line, and as the table that a notebook shows (IPython's `_repr_html_`)."""

from __future__ import annotations

from probe_core.model.naming import short_ids
from probe_core.wording import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.device import Device
    from probe_core.model.report import Report

_LONGEST = 60
"""Characters of the devices' names in the line."""

_HEADS = ("#", "ID", "DEVICE", "MEMORY GiB", "FP32 TFLOPS", "FP16 TFLOPS", "INT8 TOPS", "STATE")


def summary(report: Report) -> str:
    """Return ``8 × NVIDIA H100 80GB HBM3 + AMD EPYC, primary 1b:00.0, 2 findings``."""
    names = [device.name or device.kind for device in report.devices]
    counts = {name: names.count(name) for name in names}
    text = " + ".join(f"{n} × {name}" if n > 1 else name for name, n in counts.items())
    shown = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    short = short_ids(device.id for device in report.devices)
    primary = short.get(report.primary or "", report.primary)
    parts = [shown or "no device", f"primary {primary}" if primary else ""]
    count = len(report.findings)
    parts.append(counted(count, "finding") if count else "")
    return ", ".join(filter(None, parts))


def html(report: Report) -> str:
    """Return the devices as an HTML table and the findings below it, all of it escaped."""
    from html import escape  # here: it brings re along, which the line does not need

    short = short_ids(device.id for device in report.devices)
    rows = [_cells(number, device, short) for number, device in enumerate(report.devices)]
    lines = "".join(f"<tr>{_tagged('td', row)}</tr>" for row in rows)
    findings = "".join(
        f"<li>{escape(f'{finding.severity}: {finding.what} [{finding.code}]')}</li>"
        for finding in report.findings
    )
    table = f"<table><thead><tr>{_tagged('th', _HEADS)}</tr></thead><tbody>{lines}</tbody></table>"
    return f"<div>{table}{f'<ul>{findings}</ul>' if findings else ''}</div>"


def _tagged(tag: str, cells: tuple[str, ...]) -> str:
    from html import escape

    return "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells)


def _cells(number: int, device: Device, short: dict[str, str]) -> tuple[str, ...]:
    total = device.memory.total
    figures = (device.fp32, device.fp16, device.int8)
    return (
        str(number),
        short[device.id],
        device.name or "–",
        "–" if total is None else f"{total / (1 << 30):.1f}",
        *("–" if figure is None else f"{figure:.3g}" for figure in figures),
        device.readiness.state,
    )
