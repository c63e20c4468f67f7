"""What a report is made of: its fields, its document as plain data, and typed views of it.

`fields` is the one table of a device's fields. `document` types the plain data that the steps of
the pipeline hand on. The classes named here are frozen views of such a document for hosts; they
are imported on first use: a node without accelerators needs none of them, and attrs is dear.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.device import ChipRef as ChipRef
    from probe_core.model.device import Device as Device
    from probe_core.model.device import Memory as Memory
    from probe_core.model.device import Peak as Peak
    from probe_core.model.device import Readiness as Readiness
    from probe_core.model.report import Decision as Decision
    from probe_core.model.report import Finding as Finding
    from probe_core.model.report import Node as Node
    from probe_core.model.report import NodeMemory as NodeMemory
    from probe_core.model.report import Outcome as Outcome
    from probe_core.model.report import Report as Report
    from probe_core.model.sample_fields import Sample as Sample

_MODULES = {
    "ChipRef": "device",
    "Decision": "report",
    "Device": "device",
    "Finding": "report",
    "Memory": "device",
    "Node": "report",
    "NodeMemory": "report",
    "Outcome": "report",
    "Peak": "device",
    "Readiness": "device",
    "Report": "report",
    "Sample": "sample_fields",
}

__all__ = [*_MODULES]


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'probe_core.model' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"probe_core.model.{module}"), name)
    globals()[name] = value
    return value
