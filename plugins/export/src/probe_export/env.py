"""Shell variables: for a shell, systemd's EnvironmentFile, and Compose."""

from __future__ import annotations

from probe_core.model.ids import driver_version
from probe_export.capacity import blocking, capacity, cause, expected, listed, memory_of, missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import ReportDoc


def export(report: ReportDoc) -> str:
    """Return shell variables; each value is quoted, and holds no line end and no quote.

    No name begins with PROBE_: those are settings of probe-core.
    """
    devices = capacity(report)
    memory = [memory_of(device) for device in devices]
    total = sum(amount for amount in memory if amount is not None)
    # Of a laptop's two GPUs that which programs compute on.
    first = sorted(devices, key=lambda device: device["id"] != report["primary"])
    own = [device for device in first if device["vendor"] == first[0]["vendor"]]
    driver = next(filter(None, map(driver_version, own)), None)
    absent, wanted, blocked = missing(report), expected(report), blocking(report)
    table = {
        "NODE_ACCELERATORS": str(len(devices)),
        "NODE_ACCELERATOR_NAMES": listed(device["name"] for device in devices),
        "NODE_ACCELERATOR_MEMORY_BYTES": str(total) if devices and None not in memory else None,
        "NODE_DRIVER_VERSION": driver,
        "NODE_MISSING": str(len(absent)),
        "NODE_MISSING_CAUSES": ",".join(sorted({cause(d) or "unknown" for d in absent})),
        "NODE_BLOCKING": str(len(blocked)),
        "NODE_BLOCKING_CAUSES": ",".join(sorted({cause(d) or "unknown" for d in blocked})),
        "NODE_EXPECTED": _text(wanted and wanted[0]),
        "NODE_ABSENT": _text(wanted and wanted[1]),
        "NODE_MEMORY_BYTES": _text(report["node"]["memory"]["total"]),
        "NODE_ARCH": report["node"]["arch"],
        "NODE_ID": report["node"]["id"],
        "NODE_HOST": report["node"]["host"],
    }
    return "".join(f"{name}='{_quoted(value)}'\n" for name, value in table.items() if value)


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)


def _quoted(text: str) -> str:
    # In single quotes a shell reads all but the quote itself; systemd and Compose do likewise.
    # `docker run --env-file` takes the quotes as part of the value (docker/cli#3630).
    return "".join(char for char in text if char.isprintable() and char != "'")
