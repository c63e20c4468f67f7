"""The built-in probers: they only read files through the machine, so they run in process."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_core.api import NotApplicable, Request
    from probe_core.registry.prober import Prober

BUILTIN = ("bus", "cpu")
"""Their names."""


def builtin_probers() -> list[Prober]:
    """Return the built-in probers that run before all others; the fallback is apart."""
    from probe_core import __version__
    from probe_core.probers import bus
    from probe_core.registry.prober import Prober

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
            builtin=_processors,
        ),
    ]


def _processors(request: Request) -> list[dict[str, Any]] | NotApplicable:
    """Call the prober of processors, imported once children are on their way."""
    from probe_core.probers import cpu

    return cpu.probe_devices(request)
