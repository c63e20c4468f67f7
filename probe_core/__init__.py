"""Says what a compute node is; importing this costs nothing until a name is used."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_core.api import Request as Request
    from probe_core.api import SampleRequest as SampleRequest
    from probe_core.api import Unavailable as Unavailable
    from probe_core.api import finding as finding
    from probe_core.api import hookimpl as hookimpl
    from probe_core.api import not_applicable as not_applicable
    from probe_core.config import ConfigError as ConfigError
    from probe_core.gate import NotPreparedError as NotPreparedError
    from probe_core.gate import prepare as prepare
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
    from probe_core.model import Sample as Sample
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

__version__ = "0.9.0b1"

_HOMES = {
    "probe": "probing",
    "probe_async": "probing",
    "register": "probing",
    "unregister": "probing",
    "child_entry": "probing",
    "prepare": "gate",
    "NotPreparedError": "gate",
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
    "Sample": "model",
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
    # A module is bound here when it is complete; until then it comes through the gate.
    module = globals().get(home) or _gate().bring(home)
    value: object = getattr(module, name)
    globals()[name] = value
    return value


def _gate() -> Any:
    """Return the module through which all others come, see there."""
    _whole("fastpath")  # what the gate imports, and in this order
    _whole("background")
    return _whole("gate")


def _whole(name: str) -> Any:
    """Return a module of this package that nobody ever sees a part of, and nobody waits for.

    Of an import, a signal handler that runs above it sees a half, and a fork copies a lock that no
    thread of the copy opens. So this module is made aside; of two that are made, one counts.
    """
    import sys

    path = f"{__name__}.{name}"
    module = globals().get(name)
    if module is None:
        found = (finder.find_spec(path, __path__) for finder in sys.meta_path)
        spec: Any = next(filter(None, found))
        made = spec.loader.create_module(spec) or type(sys)(path)
        made.__spec__, made.__loader__, made.__file__ = spec, spec.loader, spec.origin
        made.__package__ = __name__
        spec.loader.exec_module(made)
        module = globals().setdefault(name, made)
        sys.modules[path] = module
    return module


def __dir__() -> list[str]:
    return sorted(__all__)
