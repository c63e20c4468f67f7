"""The engines that `probe cluster` gathers through, one a module; each has the same interface.

A collector is any object with `gather_model.Collector`'s three members. Nothing is imported until
a name is used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_cluster.collectors.files import Files as Files
    from probe_cluster.collectors.kubectl import Kubectl as Kubectl
    from probe_cluster.collectors.mpi import Mpi as Mpi
    from probe_cluster.collectors.ray import Ray as Ray
    from probe_cluster.collectors.slurm import Slurm as Slurm
    from probe_cluster.collectors.ssh import Ssh as Ssh

_MODULES = {
    "Files": "files",
    "Kubectl": "kubectl",
    "Mpi": "mpi",
    "Ray": "ray",
    "Slurm": "slurm",
    "Ssh": "ssh",
}

__all__ = [*_MODULES]


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'probe_cluster.collectors' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"probe_cluster.collectors.{module}"), name)
    globals()[name] = value
    return value
