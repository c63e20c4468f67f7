"""Times of processors and bytes of networks where there is no /proc: macOS and Windows."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.machine import Machine

__all__ = ["interfaces", "times"]

_TICKS = 1000
"""Of a second: psutil's times are seconds with fractions."""


def times(machine: Machine) -> dict[int, tuple[int, int]]:
    """Return how long each processor worked and passed in all; nothing on a recorded machine."""
    if not machine.live:
        return {}
    try:
        import psutil

        passed = psutil.cpu_times(percpu=True)
    except Exception:  # psutil raises what the system's own calls raise
        return {}
    ticks = {}
    for number, cpu in enumerate(passed):
        whole = int(sum(cpu) * _TICKS)
        ticks[number] = (whole - int(cpu.idle * _TICKS), whole)
    return ticks


def interfaces(machine: Machine) -> list[tuple[str, str, int, int]]:
    """Return (kind, name, bytes received, bytes sent) of each network interface but loopbacks."""
    if not machine.live:
        return []
    try:
        import psutil

        counters = psutil.net_io_counters(pernic=True)
    except Exception:  # as above
        return []
    return [
        ("network", name, int(counter.bytes_recv), int(counter.bytes_sent))
        for name, counter in sorted(counters.items())
        if not name.lower().startswith("lo")
    ]
