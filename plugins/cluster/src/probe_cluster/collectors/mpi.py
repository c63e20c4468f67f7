"""Nodes of an MPI job, through mpirun with the user's options: one process on each."""

from __future__ import annotations

from probe_cluster.collectors.all_nodes import Launch
from probe_cluster.errors import ClusterError
from probe_cluster.node_lines import node_script
from probe_cluster.node_process import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_cluster.gather_model import Limits, Sink, Target

__all__ = ["Mpi"]

_VERSION_S = 10.0


class Mpi:
    """The nodes that mpirun gets with `options`: Open MPI's, MPICH's or Intel's.

    mpirun names no node that it does not reach: it then ends with an error, which is the gather's
    `problem`.
    """

    name = "mpi"

    def __init__(self, options: Sequence[str] = ()) -> None:
        self._options = list(options)

    async def targets(self) -> list[Target]:
        """Return no node: mpirun names them when they start."""
        return []

    async def collect(self, targets: Sequence[Target], limits: Limits, sink: Sink) -> None:
        """Run one mpirun."""
        task = ["sh", "-c", node_script(limits.command)]
        command = ["mpirun", *await _one_a_node(), *self._options, *task]
        await Launch(command, limits, sink).run()


async def _one_a_node() -> list[str]:
    """Return the options that start one process a node; each MPI has its own."""
    ended, text = await output(["mpirun", "--version"], _VERSION_S, 1 << 16)
    if ended.unstarted is not None:
        raise ClusterError(f"{ended.unstarted}; install MPI on this computer, or load its module")
    version = text.decode("utf-8", "replace") + ended.stderr
    if "HYDRA" in version or "Intel(R) MPI" in version:
        return ["-ppn", "1"]
    return ["--map-by", "ppr:1:node"]
