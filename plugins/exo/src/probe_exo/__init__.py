"""probe-core for exo: import `probe_exo.device_capabilities` (old exo) or this package (current).

Nothing is imported until a name is used; pydantic only by `probe_exo.device_capabilities`.
"""

from __future__ import annotations

from probe_cluster.fronts import front

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_exo.engines import EngineMemory as EngineMemory
    from probe_exo.frozen import register_probers as register_probers
    from probe_exo.installed import Installed as Installed
    from probe_exo.installed import installed_engines as installed_engines
    from probe_exo.links import NetworkLink as NetworkLink
    from probe_exo.links import NodeLinks as NodeLinks
    from probe_exo.links import node_interfaces as node_interfaces
    from probe_exo.links import node_links as node_links
    from probe_exo.memory import AcceleratorMemory as AcceleratorMemory
    from probe_exo.memory import NodeMemory as NodeMemory
    from probe_exo.memory import engine_memory as engine_memory
    from probe_exo.memory import node_memory as node_memory
    from probe_exo.node import NodeBackends as NodeBackends
    from probe_exo.node import NodeCompute as NodeCompute
    from probe_exo.node import NodeIdentity as NodeIdentity
    from probe_exo.node import node_backends as node_backends
    from probe_exo.node import node_compute as node_compute
    from probe_exo.node import node_identity as node_identity
    from probe_exo.speed import EngineSpeed as EngineSpeed
    from probe_exo.speed import engine_speed as engine_speed

__version__ = "0.9.0b1"

_NAMES = {
    "engines": "EngineMemory",
    "frozen": "register_probers",
    "installed": "Installed installed_engines",
    "links": "NetworkLink NodeLinks node_interfaces node_links",
    "memory": "AcceleratorMemory NodeMemory engine_memory node_memory",
    "node": "NodeBackends NodeCompute NodeIdentity node_backends node_compute node_identity",
    "speed": "EngineSpeed engine_speed",
}

__all__ = ["__version__", *(name for names in _NAMES.values() for name in names.split())]

__getattr__ = front(__name__, _NAMES)
