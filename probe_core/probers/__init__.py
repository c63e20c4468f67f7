"""The built-in probers: they only read files through the machine, so they run in process."""

from __future__ import annotations

from probe_core import __version__
from probe_core.registry.prober import Prober

__all__ = ["builtin_probers"]


def builtin_probers() -> list[Prober]:
    """Return the built-in probers that run before all others; the fallback is apart."""
    from probe_core.probers import bus, cpu

    return [
        Prober(
            "bus",
            "probe_core.probers.bus",
            "probe-core",
            __version__,
            priority=60,
            summary="devices on the buses, as the kernel's files show them",
            builtin=bus.probe_devices,
        ),
        Prober(
            "cpu",
            "probe_core.probers.cpu",
            "probe-core",
            __version__,
            priority=50,
            summary="processors and their memory",
            builtin=cpu.probe_devices,
        ),
    ]
