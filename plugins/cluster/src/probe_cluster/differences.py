"""In what the nodes of a cluster differ: the odd node out, missing GPUs, and other counts.

Compared is what should be alike: versions among all nodes, drivers among those of one vendor, and
memory among nodes with the same GPUs. The larger group is the expected one.
"""

from __future__ import annotations

from collections import Counter

from probe_cluster.engine_counts import engine_differences
from probe_cluster.unlike import difference, with_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from probe_cluster.gathering import Node
    from probe_cluster.summaries import Summary
    from probe_cluster.unlike import DifferenceDoc

    Reported = tuple[Node, Summary]

__all__ = ["differences"]

_ORDER = {"error": 0, "warning": 1, "info": 2}

_MEMORY_SHARE = 0.02
"""Of the memory: firmware of one model reserves a per cent more or less. A judgement."""

_FIELDS = (
    ("probe-core", "version", "warning", "install one version on all: pip install -U probe-core"),
    ("chip data", "chipdb", "info", "install one version on all: pip install -U probe-chipdb"),
    ("kernel", "kernel", "info", ""),
    ("architecture", "arch", "info", ""),
)


def differences(nodes: Sequence[Node]) -> list[DifferenceDoc]:
    """Return in what the nodes differ, the most serious first."""
    reported = [(node, node.summary) for node in nodes if node.summary is not None]
    entries = [
        *_missing_gpus(reported),
        *_blocked(reported),
        *engine_differences(reported),
        *_drivers(reported),
        *_fields(reported),
        *_memory(reported),
        *_same_machine(reported),
        *_same_id(nodes),
    ]
    counts = Counter(node.name for node in nodes)
    shown = {node.id: node.name for node in nodes if counts[node.name] == 1}
    named = [with_names(entry, shown) for entry in entries]
    return sorted(named, key=lambda entry: _ORDER[entry["severity"]])


def _grouped(values: dict[str, str | None]) -> dict[str, list[str]]:
    """Return value → the nodes that have it, the largest group first; unknown is no value."""
    groups: dict[str, list[str]] = {}
    for id_, value in values.items():
        if value is not None:
            groups.setdefault(value, []).append(id_)
    return dict(sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])))


def _odd(
    code: str, field: str, values: dict[str, str | None], severity: str, fix: str
) -> Iterator[DifferenceDoc]:
    groups = _grouped(values)
    if len(groups) < 2:
        return
    (expected, common), *minor = groups.items()
    majority = len(common) > len(minor[0][1])
    odd = [id_ for _, ids in minor for id_ in ids] if majority else list(values)
    yield difference(
        code,
        severity,
        odd,
        field,
        expected=expected if majority else None,
        values=groups,
        fix=fix,
    )


def _fields(reported: Sequence[Reported]) -> Iterator[DifferenceDoc]:
    for field, attribute, severity, fix in _FIELDS:
        values = {node.id: getattr(summary, attribute) for node, summary in reported}
        yield from _odd("version", field, values, severity, fix)


def _drivers(reported: Sequence[Reported]) -> Iterator[DifferenceDoc]:
    by_name: dict[str, dict[str, str | None]] = {}
    for node, summary in reported:
        for driver in {gpu.driver for gpu in summary.gpus if gpu.driver is not None}:
            name, _, version = driver.partition(" ")
            if version:
                by_name.setdefault(name, {})[node.id] = version
    for name, values in sorted(by_name.items()):
        fix = f"install one version of the {name} driver on all of them"
        yield from _odd("driver", f"{name} driver", values, "warning", fix)


def _missing_gpus(reported: Sequence[Reported]) -> Iterator[DifferenceDoc]:
    """Yield the nodes that have fewer GPUs of a model than most computers of their own model."""
    counts: dict[tuple[str, str], dict[str, str | None]] = {}
    for node, summary in reported:
        for name, count in Counter(gpu.name for gpu in summary.whole).items():
            counts.setdefault((name, summary.model or ""), {})[node.id] = str(count)
    for (name, _), by_node in sorted(counts.items()):
        fix = "run `probe doctor` on those nodes"
        for entry in _odd("missing-gpus", f"number of {name}", by_node, "warning", fix):
            if entry["expected"] is not None:
                expected = int(entry["expected"])
                fewer = [id_ for id_ in entry["nodes"] if int(by_node[id_] or 0) < expected]
                if fewer:
                    yield {**entry, "nodes": fewer}


def _blocked(reported: Sequence[Reported]) -> Iterator[DifferenceDoc]:
    """Yield each cause that keeps GPUs from being used, with its nodes."""
    causes: dict[str, dict[str, int]] = {}
    evidence: dict[str, set[str]] = {}
    for node, summary in reported:
        for gpu in summary.gpus:
            if gpu.blocked is not None:
                step = gpu.blocked.partition(":")[0]
                evidence.setdefault(step, set()).add(gpu.blocked)
                nodes = causes.setdefault(step, {})
                nodes[node.id] = nodes.get(node.id, 0) + 1
    for step, by_node in sorted(causes.items()):
        yield difference(
            "blocked-gpus",
            "warning",
            list(by_node),
            f"GPUs that are blocked at the step {step!r}",
            expected="0",
            values=_grouped({id_: str(count) for id_, count in by_node.items()}),
            cause="; ".join(sorted(evidence[step])[:2]),
            fix="run `probe doctor` on those nodes",
        )


def _memory(reported: Sequence[Reported]) -> Iterator[DifferenceDoc]:
    """Yield nodes with the same GPUs and CPU whose memory is not that of most of them."""
    alike: dict[object, list[Reported]] = {}
    for node, summary in reported:
        names = tuple(sorted(gpu.name for gpu in summary.whole))
        alike.setdefault((names, summary.cpu, summary.model), []).append((node, summary))
    for group in alike.values():
        sizes = {summary.memory for _, summary in group if summary.memory is not None}
        values = {node.id: _near(summary.memory, sizes) for node, summary in group}
        yield from _odd("memory", "memory of like nodes", values, "info", "")


def _near(size: int | None, sizes: Collection[int]) -> str | None:
    """Return the smallest of `sizes` that `size` cannot be told from, in GiB."""
    if size is None:
        return None
    return f"{min(other for other in sizes if other >= size * (1 - _MEMORY_SHARE)) / 2**30:.0f} GiB"


def _same_machine(reported: Sequence[Reported]) -> Iterator[DifferenceDoc]:
    groups = _grouped({node.id: summary.machine_id for node, summary in reported})
    for ids in groups.values():
        if len(ids) > 1:
            yield difference(
                "same-machine",
                "warning",
                ids,
                "one machine id on all of them",
                expected=None,
                values={"the same": ids},
                fix="name each computer once; of a cloned image, renew /etc/machine-id",
            )


def _same_id(nodes: Sequence[Node]) -> Iterator[DifferenceDoc]:
    ids = {node.id for node in nodes}
    for node in nodes:
        base, mark, number = node.id.rpartition("#")
        if mark and number.isdecimal() and base in ids:
            yield difference(
                "same-id",
                "warning",
                [base, node.id],
                "one name for two nodes",
                expected=None,
                values={base: [base, node.id]},
                fix="give each node a name of its own",
            )
