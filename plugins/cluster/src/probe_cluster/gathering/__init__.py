"""Ask many nodes for their reports at once, through an engine that reaches them.

An engine is any object with `model.Collector`'s three members; there is one in each of `files`,
`kubectl`, `mpi`, `ray`, `slurm` and `ssh`.
"""

from __future__ import annotations

from probe_cluster.fronts import front

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_cluster.gathering.files import Files as Files
    from probe_cluster.gathering.gathered import Gathered as Gathered
    from probe_cluster.gathering.gathered import Node as Node
    from probe_cluster.gathering.gathered import gather as gather
    from probe_cluster.gathering.kubectl import Kubectl as Kubectl
    from probe_cluster.gathering.model import Answer as Answer
    from probe_cluster.gathering.model import Limits as Limits
    from probe_cluster.gathering.model import Sink as Sink
    from probe_cluster.gathering.model import Target as Target
    from probe_cluster.gathering.mpi import Mpi as Mpi
    from probe_cluster.gathering.ray import Ray as Ray
    from probe_cluster.gathering.slurm import Slurm as Slurm
    from probe_cluster.gathering.ssh import Ssh as Ssh

_NAMES = {
    "files": "Files",
    "gathered": "Gathered Node gather",
    "kubectl": "Kubectl",
    "model": "Answer Limits Sink Target",
    "mpi": "Mpi",
    "ray": "Ray",
    "slurm": "Slurm",
    "ssh": "Ssh",
}

__all__ = [name for names in _NAMES.values() for name in names.split()]

__getattr__ = front(__name__, _NAMES)
