"""What an engine counts on a node beside what its report shows, and why the two differ."""

from __future__ import annotations

from probe_cluster.unlike import COUNTS, difference

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence, Set

    from probe_cluster.gathering import Node
    from probe_cluster.summaries import Summary
    from probe_cluster.unlike import DifferenceDoc

__all__ = ["engine_differences"]


def engine_differences(
    reported: Sequence[tuple[Node, Summary]],
) -> Iterator[DifferenceDoc]:
    """Yield the nodes on which the engine counts other GPUs than a process can use there.

    Nodes with the same counts and the same cause are one difference.
    """
    groups: dict[tuple[str, int, int, str, str], list[str]] = {}
    peers = {(summary.model, len(summary.whole)) for _, summary in reported if summary.model}
    for node, summary in reported:
        count = node.engine["gpus"] if node.engine is not None else None
        usable = len(summary.schedulable)
        if node.engine is None or count is None or count == usable:
            continue
        cause, fix = _cause(int(count), summary, peers)
        key = (node.engine["source"], int(count), usable, cause, fix)
        groups.setdefault(key, []).append(node.id)
    for (source, count, usable, cause, fix), ids in groups.items():
        yield difference(
            COUNTS,
            "warning",
            ids,
            f"GPUs: {source} counts {count}, a process can use {usable}",
            expected=None,
            values={str(usable): ids},
            cause=cause,
            fix=fix,
        )


def _cause(count: int, summary: Summary, peers: Set[tuple[str | None, int]]) -> tuple[str, str]:
    """Return why, and what to do. `peers` are the numbers of GPUs of each model of computer."""
    whole, usable = summary.whole, summary.schedulable
    blocked = [gpu for gpu in summary.gpus if gpu.blocked is not None]
    hidden = [gpu for gpu in summary.gpus if gpu.hidden is not None and gpu.blocked is None]
    parts = [gpu for gpu in usable if gpu.parent is not None]
    if count > len(usable) and blocked:
        doctor = "run `probe doctor` there, and lower the engine's count until it is repaired"
        return f"{_named([gpu.id for gpu in blocked])} blocked: {blocked[0].blocked}", doctor
    if count > len(usable) and hidden:
        fix = "compare the variable in the engine's environment and in the node's"
        return f"{_named([gpu.id for gpu in hidden])} hidden: {hidden[0].hidden}", fix
    if parts:
        fix = "configure the engine with the partitions"
        return f"the node has {len(parts)} partitions of {len(whole)} GPUs", fix
    if count > len(whole) and whole and (summary.model, count) in peers:
        doctor = "run `probe doctor` there, and lower the engine's count until it is repaired"
        return (
            f"{count - len(whole)} are missing: other computers of its model have {count}",
            doctor,
        )
    if count > len(whole):
        fix = "install the plugin for that hardware there, or correct the engine's configuration"
        reason = "no plugin detects the others, or the process was not granted them"
        return f"the report has {len(whole)} GPUs: {reason}", fix
    vendors = sorted({gpu.name for gpu in usable})
    fix = "configure the engine with the GPUs; `probe export` writes its form"
    return f"the engine is not configured with all of {', '.join(vendors)}", fix


def _named(ids: Sequence[str]) -> str:
    tail = f" and {len(ids) - 3} more" if len(ids) > 3 else ""
    return f"{', '.join(ids[:3])}{tail} {'is' if len(ids) == 1 else 'are'}"
