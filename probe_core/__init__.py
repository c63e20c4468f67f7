"""Says what a compute node is; importing this costs nothing until a name is used."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.api import Request as Request
    from probe_core.api import SampleRequest as SampleRequest
    from probe_core.api import Unavailable as Unavailable
    from probe_core.api import finding as finding
    from probe_core.api import hookimpl as hookimpl
    from probe_core.api import not_applicable as not_applicable
    from probe_core.config import ConfigError as ConfigError
    from probe_core.leasing import LeaseError as LeaseError
    from probe_core.leasing import lease as lease
    from probe_core.machine import Machine as Machine
    from probe_core.model import Device as Device
    from probe_core.model import Finding as Finding
    from probe_core.model import Memory as Memory
    from probe_core.model import Node as Node
    from probe_core.model import Outcome as Outcome
    from probe_core.model import Peak as Peak
    from probe_core.model import Report as Report
    from probe_core.probing import child_entry as child_entry
    from probe_core.probing import probe as probe
    from probe_core.probing import probe_async as probe_async
    from probe_core.probing import register as register
    from probe_core.probing import unregister as unregister
    from probe_core.sampling import Round as Round
    from probe_core.sampling import samples as samples
    from probe_core.sampling import samples_async as samples_async
    from probe_core.selection import SelectionError as SelectionError
    from probe_core.selection import select as select

__version__ = "0.9.0"

_HOMES = {
    "probe": "probing",
    "probe_async": "probing",
    "register": "probing",
    "unregister": "probing",
    "child_entry": "probing",
    "lease": "leasing",
    "LeaseError": "leasing",
    "samples": "sampling",
    "samples_async": "sampling",
    "Round": "sampling",
    "select": "selection",
    "SelectionError": "selection",
    "Machine": "machine",
    "ConfigError": "config",
    "Report": "model",
    "Device": "model",
    "Memory": "model",
    "Node": "model",
    "Peak": "model",
    "Finding": "model",
    "Outcome": "model",
    "Request": "api",
    "SampleRequest": "api",
    "Unavailable": "api",
    "finding": "api",
    "hookimpl": "api",
    "not_applicable": "api",
}

__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'probe_core' has no attribute {name!r}")
    # importlib is always loaded; import_module resolves without importing anything else.
    from importlib import import_module

    value: object = getattr(import_module(f"probe_core.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
