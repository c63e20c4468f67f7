"""Slurm's short form of many host names: ``n[1-3,07],login`` is n1, n2, n3, n07 and login."""

from __future__ import annotations

import os

from probe_cluster.gathering.launching import Launch, attend_all
from probe_cluster.gathering.model import Target
from probe_cluster.gathering.process import output
from probe_cluster.gathering.sending import node_script
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from probe_cluster.gathering.model import EngineDoc, Limits, Sink, Wire
    from probe_cluster.network.start import Start


_MOST_NODES = 100_000


def expand(text: str) -> list[str]:
    """Return the names in their order; a part that is malformed stands for itself."""
    names: list[str] = []
    for part in _split(text.strip()):
        for name in _expanded(part) if part else ():
            if len(names) >= _MOST_NODES:
                return names
            names.append(name)
    return names


def _split(text: str) -> Iterator[str]:
    """Yield the parts between the commas that are not in brackets."""
    part, depth = "", 0
    for char in text:
        depth += (char == "[") - (char == "]")
        if char == "," and depth == 0:
            yield part
            part = ""
        else:
            part += char
    yield part


def _expanded(part: str) -> Iterator[str]:
    head, bracket, tail = part.partition("[")
    ranges, closing, end = tail.partition("]")
    if not bracket or not closing:
        yield part
        return
    for span in ranges.split(","):
        first, _, last = span.partition("-")
        last = last or first
        if not (first.isdecimal() and last.isdecimal() and len(last) < 10):
            yield part
            return
        for number in range(int(first), min(int(last), int(first) + _MOST_NODES) + 1):
            # The zeros before a number are part of the name: n[08-10] is n08, n09, n10.
            yield from _expanded(f"{head}{number:0{len(first)}d}{end}")


_COUNTS_S = 15.0
"""Seconds for slurmctld to print its nodes; a busy one takes some."""

_COUNTS_LIMIT = 64 << 20
"""Bytes: a node is about 1 kB."""

# One task a node, and a task that fails ends only itself.
_OPTIONS = ("--ntasks-per-node=1", "--kill-on-bad-exit=0")


class Slurm:
    """The nodes that srun gets with `options`; within a job those of the job."""

    name = "slurm"
    resumes = True
    process_each = False

    def __init__(
        self, options: Sequence[str] = (), environ: Mapping[str, str] | None = None
    ) -> None:
        self._options = list(options)
        self._environ = os.environ if environ is None else environ

    async def targets(self) -> list[Target]:
        """Return no node: srun lists them when the job starts."""
        return []

    async def collect(self, targets: Sequence[Target], limits: Limits, sink: Sink) -> None:
        """Run one srun, then ask slurmctld what it counts on the nodes."""
        task = ["sh", "-c", node_script(limits)]
        ids: list[str] = []

        def listed(text: str) -> list[str]:
            names = expand(text)
            ids.extend(names)
            return names

        # A gather that is resumed asks these alone.
        names = [target.id for target in targets]
        only = [f"--nodes={len(names)}", f"--nodelist={','.join(names)}"] if names else []
        launch = Launch([*self._srun(), *only, *task], limits, sink, listed)
        await launch.run()
        for id_, counts in (await _counts()).items():
            if id_ in ids:
                sink.target(Target(id_, engine=counts))

    async def agents(self, targets: Sequence[Target], start: Start, wire: Wire) -> None:
        """Run one srun on the same nodes; it passes its input on to all tasks."""
        nodes = ",".join(target.id for target in targets)
        task = ["sh", "-c", start.script()]
        command = [*self._srun(), f"--nodelist={nodes}", *task]
        await attend_all(command, targets, wire, program=start.program)

    def _srun(self) -> list[str]:
        nodes = self._environ.get("SLURM_JOB_NUM_NODES") or self._environ.get("SLURM_NNODES")
        # Within a job the step shares what the job's other steps hold, or it would wait for them.
        inside = [f"--nodes={nodes}", "--overlap"] if nodes else []
        return ["srun", *inside, *_OPTIONS, *self._options]


async def _counts() -> dict[str, EngineDoc]:
    """Return what slurmctld counts on each node; nothing where it does not answer."""
    command = ["scontrol", "--oneliner", "show", "node"]
    ended, text = await output(command, _COUNTS_S, _COUNTS_LIMIT)
    return dict(_parsed(text.decode("utf-8", "replace"))) if ended.status == 0 else {}


def _parsed(text: str) -> Iterator[tuple[str, EngineDoc]]:
    for line in text.splitlines():
        pairs = (field.partition("=") for field in line.split())
        # OS= and Reason= hold blanks: their later words have no "=", or come last.
        fields: dict[str, str] = {}
        for key, equals, value in pairs:
            if equals:
                fields.setdefault(key, value)
        if "NodeName" in fields:
            yield clean_text(fields["NodeName"]), _engine(fields)


def _engine(fields: Mapping[str, str]) -> EngineDoc:
    memory = _whole(fields.get("RealMemory", ""))
    return {
        "source": "scontrol show node",
        "gpus": _gpus(fields.get("Gres", "")),
        "cpus": _whole(fields.get("CPUTot", "")),
        "memory": None if memory is None else memory << 20,  # Slurm counts in MiB
        "state": clean_text(fields["State"], 60) if fields.get("State") else None,
    }


def _gpus(gres: str) -> int:
    """Return the GPUs of ``gpu:h100:8(S:0-1),gpu:a100:2,shard:4``; none is 0."""
    total, depth, item = 0, 0, ""
    for char in f"{gres},":
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts = item.partition("(")[0].split(":")
            if parts[0] == "gpu":
                count = _whole(parts[-1])
                total += int(len(parts) < 3) if count is None else count
            item = ""
        else:
            item += char
    return total


def _whole(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 16 else None
