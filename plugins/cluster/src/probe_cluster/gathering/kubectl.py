"""Pods by a label selector, through the user's kubectl: one pod a node, such as a DaemonSet's."""

from __future__ import annotations

import asyncio
from collections import Counter

from probe_cluster.gathering.launching import attend_each, run_each
from probe_cluster.gathering.model import Answer, Target
from probe_cluster.gathering.process import output
from probe_cluster.gathering.sending import node_script
from probe_cluster.shared import ClusterError, quantity, table
from probe_core.commands import parse_json
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_cluster.gathering.model import EngineDoc, Limits, Sink, Wire
    from probe_cluster.network.start import Start
    from probe_core.model.document import Json


_LIST_S = 15.0
"""Seconds for a list of the API server; kubectl itself would wait without end."""

_LIST_LIMIT = 256 << 20
"""Bytes of a list: a pod's JSON is 10 to 40 kB, a node's, with its images, 20."""

_GPUS = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe")
"""Resources of the vendors' device plugins; MIG's are counted by their prefix."""

_MIG = "nvidia.com/mig-"


class Kubectl:
    """Running pods of a label selector."""

    name = "kubectl"
    resumes = True
    process_each = True

    def __init__(
        self, selector: str, *, namespace: str | None = None, container: str | None = None
    ) -> None:
        self._selector = selector
        self._space = ["-n", namespace] if namespace else []
        self._container = ["-c", container] if container else []
        self._stopped: dict[str, str] = {}

    async def targets(self) -> list[Target]:
        """Return a node for each pod, with what the API server counts on it."""
        pods, nodes = await asyncio.gather(
            _items(["get", "pods", "-l", self._selector, *self._space]), _engine_nodes()
        )
        if not pods:
            place = f" in namespace {self._space[1]}" if self._space else ""
            raise ClusterError(f"no pod{place} has the label {self._selector!r}")
        hosts = Counter(_text(table(pod.get("spec")).get("nodeName")) for pod in pods)
        return [self._target(pod, hosts, nodes) for pod in pods]

    def _target(
        self, pod: Mapping[str, Json], hosts: Counter[str], nodes: Mapping[str, EngineDoc]
    ) -> Target:
        name = _text(table(pod.get("metadata")).get("name"))
        host = _text(table(pod.get("spec")).get("nodeName"))
        # Two pods on one node are two rows: each sees what it was granted.
        id_ = host if host and hosts[host] == 1 else f"{host or 'unscheduled'}/{name}"
        phase = _text(table(pod.get("status")).get("phase"))
        if phase != "Running":
            self._stopped[id_] = f"its pod {name} is {phase or 'in no phase'}, not Running"
        return Target(id_, name, engine=nodes.get(host))

    async def collect(self, targets: Sequence[Target], limits: Limits, sink: Sink) -> None:
        """Start a `kubectl exec` for each running pod; without -t, which would add CRs."""
        for id_, reason in self._stopped.items():
            sink.answer(Answer(id_, "missing", reason, "see `kubectl describe pod`"))
        running = [target for target in targets if target.id not in self._stopped]
        script = node_script(limits)
        await run_each(running, lambda target: self._exec(target, script), limits, sink)

    async def agents(self, targets: Sequence[Target], start: Start, wire: Wire) -> None:
        """Start a `kubectl exec` for the agent of each pod; its input is the agent's."""
        script = start.script()
        await attend_each(targets, lambda target: self._exec(target, script), start, wire)

    def _exec(self, target: Target, script: str) -> list[str]:
        pod = ["-i", target.address, *self._container]
        return ["kubectl", "exec", *self._space, *pod, "--", "sh", "-c", script]


async def _items(arguments: Sequence[str]) -> list[Mapping[str, Json]]:
    """Return the items of a list of the API server. Raises `ClusterError`."""
    command = f"`kubectl {' '.join(arguments[:2])}`"
    ended, text = await output(["kubectl", *arguments, "-o", "json"], _LIST_S, _LIST_LIMIT)
    if ended.unstarted is not None:
        raise ClusterError(f"{ended.unstarted}; install kubectl on this computer")
    if ended.timed_out:
        raise ClusterError(f"the API server gave no answer to kubectl within {_LIST_S:g} s")
    if ended.status != 0:
        sentence = ended.last_line() or "nothing"
        raise ClusterError(f"{command} ended with {ended.status}: {sentence}")
    try:
        items = table(parse_json(text)).get("items")
    except (ValueError, RecursionError):
        items = None
    if not isinstance(items, list):
        raise ClusterError(f"{command} printed no list of JSON")
    return [table(item) for item in items]


async def _engine_nodes() -> dict[str, EngineDoc]:
    """Return what the API server counts on each node; nothing without the right to list nodes."""
    try:
        nodes = await _items(["get", "nodes"])
    except ClusterError:
        return {}
    return {_text(table(node.get("metadata")).get("name")): _counts(node) for node in nodes}


def _counts(node: Mapping[str, Json]) -> EngineDoc:
    amounts = table(table(node.get("status")).get("allocatable"))
    gpus = [
        quantity(_text(value))
        for name, value in amounts.items()
        if name in _GPUS or name.startswith(_MIG)
    ]
    memory = quantity(_text(amounts.get("memory")))
    # Without a device plugin there is no key: the scheduler then counts none.
    return {
        "source": "kubectl get nodes, allocatable",
        "gpus": sum(count or 0 for count in gpus),
        "cpus": quantity(_text(amounts.get("cpu"))),
        "memory": None if memory is None else int(memory),
        "state": "cordoned" if table(node.get("spec")).get("unschedulable") is True else None,
    }


def _text(value: Json) -> str:
    return clean_text(value) if isinstance(value, str) else ""
