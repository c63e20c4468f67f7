"""Nodes of an MPI job, through mpirun with the user's options: one process on each."""

from __future__ import annotations

from probe_cluster.gathering.launching import Launch, attend_with_relay
from probe_cluster.gathering.lines import TO_STDERR
from probe_cluster.gathering.process import output
from probe_cluster.gathering.sending import Parcel, node_script
from probe_cluster.shared import ClusterError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_cluster.gathering.model import Limits, Sink, Target, Wire
    from probe_cluster.network.start import Start


_VERSION_S = 10.0


class Mpi:
    """The nodes that mpirun gets with `options`: Open MPI's, MPICH's or Intel's.

    mpirun names no node that it does not reach: it then ends with an error, which is the gather's
    `problem`.
    """

    name = "mpi"
    process_each = False

    def __init__(self, options: Sequence[str] = ()) -> None:
        self._options = list(options)

    async def targets(self) -> list[Target]:
        """Return no node: mpirun names them when they start."""
        return []

    async def collect(self, targets: Sequence[Target], limits: Limits, sink: Sink) -> None:
        """Run one mpirun."""
        task = ["sh", "-c", TO_STDERR + node_script(limits, alone=True)]
        one_a_node, passing_on = await _own_options()
        variables = await Parcel(limits).variables()
        passed_on = [word for name in variables for word in (*passing_on, name)]
        command = ["mpirun", *one_a_node, *(passed_on if passing_on else ()), *self._options, *task]
        await Launch(command, limits, sink, both=True, environ=variables).run()

    async def agents(self, targets: Sequence[Target], start: Start, wire: Wire) -> None:
        """Run one mpirun; its agents connect to this computer for their commands.

        Open MPI 4.1 and MPICH 4.0 give their input to the first process alone: with Open MPI's
        ``--stdin all`` the others had the end of the input at once.
        """
        one_a_node, passing_on = await _own_options()
        async with start.relay() as relay:
            task = ["sh", "-c", TO_STDERR + relay.script()]
            variables = [word for name in relay.variables for word in (*passing_on, name)]
            passed_on = variables if passing_on else []
            command = ["mpirun", *one_a_node, *passed_on, *self._options, *task]
            await attend_with_relay(command, targets, wire, relay)


async def _own_options() -> tuple[list[str], list[str]]:
    """Return what starts one process a node, and what passes a variable on; each MPI has its own.

    Hydra passes the whole environment on by default.
    """
    ended, text = await output(["mpirun", "--version"], _VERSION_S, 1 << 16)
    if ended.unstarted is not None:
        raise ClusterError(f"{ended.unstarted}; install MPI on this computer, or load its module")
    version = text.decode("utf-8", "replace") + ended.stderr
    if "HYDRA" in version or "Intel(R) MPI" in version:
        return ["-ppn", "1"], []
    return ["--map-by", "ppr:1:node"], ["-x"]
