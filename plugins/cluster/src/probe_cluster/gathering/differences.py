"""In what the nodes of a cluster differ: the odd node out, missing GPUs, and other counts.

Compared is what should be alike: versions among all nodes, and GPUs, drivers and memory among nodes
that are equal but for them. The larger group is the expected one. A node whose own setting or saved
baseline says what it should have is held to that, not to the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from probe_cluster.shared import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence, Set
    from typing import TypedDict

    from probe_cluster.gathering.gathered import Node
    from probe_cluster.gathering.summaries import Gpu, Summary

    Reported = tuple[Node, Summary]

    class DifferenceDoc(TypedDict):
        """One difference; it has a finding's names, and `what` is made of the facts."""

        code: str
        severity: str
        nodes: list[str]
        field: str
        expected: str | None
        values: dict[str, list[str]]
        what: str
        why: str | None
        fix: str | None


COUNTS = "engine-count"

_WHOLE = (COUNTS, "same-machine", "same-id")


def difference(
    code: str,
    severity: str,
    nodes: Sequence[str],
    field: str,
    *,
    expected: str | None,
    values: Mapping[str, Sequence[str]],
    cause: str | None = None,
    fix: str = "",
) -> DifferenceDoc:
    """Return a difference, with a sentence that names the nodes by their ids.

    `nodes` are those that are unlike the others, `expected` is the value of most nodes (None where
    no value has a majority), `values` are the nodes of each value.
    """
    return {
        "code": code,
        "severity": severity,
        "nodes": list(nodes),
        "field": field,
        "expected": expected,
        "values": {value: list(ids) for value, ids in values.items()},
        "what": _sentence(code, nodes, field, expected, values),
        "why": cause,
        "fix": fix or None,
    }


def with_names(entry: DifferenceDoc, names_of: Mapping[str, str]) -> DifferenceDoc:
    """Return the difference with a sentence that calls each node by its name, where it has one.

    Ids stay in the facts: of Ray they are 56 hexadecimal digits.
    """
    values = {
        value: [names_of.get(id_, id_) for id_ in ids] for value, ids in entry["values"].items()
    }
    nodes = [names_of.get(id_, id_) for id_ in entry["nodes"]]
    return {
        **entry,
        "what": _sentence(entry["code"], nodes, entry["field"], entry["expected"], values),
    }


def _sentence(
    code: str,
    nodes: Sequence[str],
    field: str,
    expected: str | None,
    values: Mapping[str, Sequence[str]],
) -> str:
    if code in _WHOLE:  # the field says it all
        return f"{names(nodes)}: {field}"
    odd = set(nodes)
    parts = [
        f"{value} on {names(ids)}"
        for value, ids in values.items()
        if expected is None or odd.intersection(ids)
    ]
    tail = f"; expected is {expected}" if expected is not None else ""
    return f"{field}: {', '.join(parts)}{tail}"


# What an engine counts on a node beside what its report shows, and why the two differ.


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
        *_own_expectations(reported),
        *_missing_gpus(reported),
        *_unlike_gpus(reported),
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
    """Yield other drivers among computers of one model and processor with the same GPUs, else of
    all.
    """
    by_name: dict[str, dict[object, dict[str, str | None]]] = {}
    for node, summary in reported:
        key = (summary.model, summary.cpu, *sorted({gpu.name for gpu in summary.whole}))
        for driver in {gpu.driver for gpu in summary.gpus if gpu.driver is not None}:
            name, _, version = driver.partition(" ")
            if version:
                by_name.setdefault(name, {}).setdefault(key, {})[node.id] = version
    for name, groups in sorted(by_name.items()):
        field, fix = f"{name} driver", f"install one version of the {name} driver on all of them"
        alike = [e for own in groups.values() for e in _odd("driver", field, own, "warning", fix)]
        every = {id_: version for own in groups.values() for id_, version in own.items()}
        # Unequal nodes may be meant to have other drivers.
        yield from alike or _odd("driver", field, every, "info", fix)


def _own_expectations(reported: Sequence[Reported]) -> Iterator[DifferenceDoc]:
    """Yield what nodes lack of what their own setting or baseline says."""
    groups: dict[tuple[str, str, str, str, str], list[str]] = {}
    for node, summary in reported:
        own = summary.expected
        if own is not None and own.absent:
            here = str(max(0, own.count - own.absent))
            key = ("missing-gpus", own.source, "accelerators", str(own.count), here)
            groups.setdefault(key, []).append(node.id)
        for fact, expected, found in own.unlike if own is not None else ():
            key = ("unlike-gpus", own.source if own else "", fact, expected, found)
            groups.setdefault(key, []).append(node.id)
    for (code, source, fact, expected, found), ids in sorted(groups.items()):
        severity = "error" if code == "missing-gpus" else "warning"
        field = f"{fact} that {source} expects"
        values = {found: ids}
        yield difference(code, severity, ids, field, expected=expected, values=values, fix=_DOCTOR)


_DOCTOR = "run `probe doctor` on those nodes"


def _equal(reported: Sequence[Reported]) -> Iterator[list[Reported]]:
    """Yield the nodes that are equal but for their GPUs: model of computer, processor and memory.

    One model is sold with more and fewer GPUs, and all virtual machines of a cloud have one model:
    who bought another number of GPUs mostly bought other memory, too.
    """
    groups: dict[object, list[Reported]] = {}
    for node, summary in reported:
        if summary.model is not None:
            key = (summary.model, summary.cpu, summary.vm)
            groups.setdefault(key, []).append((node, summary))
    for group in groups.values():
        yield from _of_one_size(group)


def _of_one_size(group: Sequence[Reported]) -> Iterator[list[Reported]]:
    own: list[Reported] = []
    for entry in sorted(group, key=lambda entry: entry[1].memory or 0):
        if own and (entry[1].memory or 0) > (own[-1][1].memory or 0) * (1 + _MEMORY_SHARE):
            yield own
            own = []
        own.append(entry)
    if own:
        yield own


def _missing_gpus(reported: Sequence[Reported]) -> Iterator[DifferenceDoc]:
    """Yield the nodes that have fewer GPUs of a model than their equals."""
    for group in _equal(reported):
        counts: dict[str, dict[str, int]] = {}
        for node, summary in group:
            for name, count in Counter(gpu.name for gpu in summary.whole).items():
                counts.setdefault(name, {})[node.id] = count
        held = {node.id for node, summary in group if summary.expected is not None}
        for name, by_node in sorted(counts.items()):
            own = by_node | dict.fromkeys(_without(by_node, group), 0)
            expected = _usual(own)
            fewer = [id_ for id_, count in own.items() if expected and count < expected]
            if fewer := [id_ for id_ in fewer if id_ not in held]:
                yield difference(
                    "missing-gpus",
                    "warning",
                    fewer,
                    f"number of {name}",
                    expected=str(expected),
                    values=_grouped({id_: str(count) for id_, count in own.items()}),
                    fix=_DOCTOR,
                )


_LEAST = 3
"""Equal nodes of which one can be unlike the others."""


def _unlike_gpus(reported: Sequence[Reported]) -> Iterator[DifferenceDoc]:
    """Yield the nodes whose GPUs have less of a fact than those of most of their equals."""
    for group in _equal(reported):
        by_cards: dict[tuple[str, ...], list[Reported]] = {}
        for node, summary in group:
            cards = tuple(sorted(gpu.name for gpu in summary.whole))
            by_cards.setdefault(cards, []).append((node, summary))
        for cards, own in by_cards.items():
            if cards and len(own) >= _LEAST:
                yield from _other_layouts(own)
        by_cards.pop((), None)
        for fact in _FACTS:
            yield from _less(fact, list(by_cards.values()))


def _other_layouts(group: Sequence[Reported]) -> Iterator[DifferenceDoc]:
    """Yield whose GPUs are divided otherwise than those of most; it may be meant so."""
    values: dict[str, str | None] = {node.id: _layout(summary) for node, summary in group}
    for entry in _odd("unlike-gpus", "instances of the GPUs", values, "info", ""):
        if entry["expected"] is not None:
            yield entry


def _layout(summary: Summary) -> str:
    """Return how the GPUs of a node are divided: "14 × 1g.10gb", "none"."""
    profiles = Counter(gpu.profile or "part" for gpu in summary.gpus if gpu.parent is not None)
    return ", ".join(f"{count} × {name}" for name, count in sorted(profiles.items())) or "none"


Read = Callable[["Gpu"], "int | None"]

Fact = tuple[str, Read, Callable[[int], str]]

_LINKS = "active NVLinks"

_FACTS: tuple[Fact, ...] = (
    ("GPU memory", lambda gpu: gpu.memory, lambda value: f"{value / 2**30:.3g} GiB"),
    ("PCIe lanes", lambda gpu: gpu.lanes, str),
    (_LINKS, lambda gpu: gpu.nvlinks, str),
)


def _less(fact: Fact, groups: Sequence[Sequence[Reported]]) -> Iterator[DifferenceDoc]:
    """Compare one fact of all GPUs, the least first: slots have other addresses on each node.

    `groups` are the nodes with the same GPUs. Those of too few nodes are compared with all GPUs of
    the others, where nearly all agree.
    """
    name, read, show = fact
    known = {
        node.id: values
        for group in groups
        for node, summary in group
        if (values := _sorted(summary, read)) is not None
    }
    norms: dict[str, tuple[int, ...]] = {}
    usual = _nearly_all(known.values())
    for group in groups:
        ids = [node.id for node, _ in group if node.id in known]
        norm = _median([known[id_] for id_ in ids]) if len(ids) >= _LEAST else None
        for id_ in ids:
            if norm is not None:
                norms[id_] = norm
            elif usual is not None and len(ids) < _LEAST:
                norms[id_] = (usual,) * len(known[id_])
    held = {node.id for group in groups for node, own in group if own.expected is not None}
    odd = [id_ for id_, norm in norms.items() if id_ not in held and _has_less(known[id_], norm)]
    for norm in dict.fromkeys(norms[id_] for id_ in odd):
        own = [id_ for id_ in odd if norms[id_] == norm]
        # A card without its bridge has no link at all, and may be meant so.
        bare = name == _LINKS and not any(max(known[id_]) for id_ in own)
        yield difference(
            "unlike-gpus",
            "info" if bare else "warning",
            own,
            name,
            expected=_counted(norm, show),
            values=_grouped({id_: _counted(values, show) for id_, values in known.items()}),
            fix=_DOCTOR,
        )


def _median(lists: Sequence[tuple[int, ...]]) -> tuple[int, ...] | None:
    """Return the middle of each place of equally long lists; None where most are not like that."""
    middle = tuple(sorted(values)[len(values) // 2] for values in zip(*lists, strict=True))
    alike = sum(not (_has_less(own, middle) or _has_less(middle, own)) for own in lists)
    return middle if 2 * alike > len(lists) else None


_NEARLY = 0.8
"""Of all GPUs, eight or more: seven of eight on a computer are a slot that is narrow on each."""


def _nearly_all(lists: Collection[tuple[int, ...]]) -> int | None:
    """Return the value of nearly all GPUs, where one node has no other; None without one."""
    values = [value for own in lists for value in own]
    value, count = max(Counter(values).items(), key=lambda item: item[1], default=(0, 0))
    is_common = len(values) >= 8 and count >= _NEARLY * len(values)
    return value if is_common and any(set(own) == {value} for own in lists) else None


def _sorted(summary: Summary, read: Read) -> tuple[int, ...] | None:
    """Return the values of a node's whole GPUs; None where one of them is unknown."""
    values = [read(gpu) for gpu in summary.whole]
    known = [value for value in values if value is not None]
    return tuple(sorted(known)) if known and len(known) == len(values) else None


def _has_less(own: Sequence[int], norm: Sequence[int]) -> bool:
    pairs = zip(own, norm, strict=True)
    return any(value < usual * (1 - _MEMORY_SHARE) for value, usual in pairs)


def _counted(values: Sequence[int], show: Callable[[int], str]) -> str:
    counts = Counter(map(show, values))
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{count} with {value}" for value, count in counts.items())


_MANY = 4
"""GPUs of a computer whose model is not also sold as one without any."""


def _without(by_node: Mapping[str, int], group: Sequence[Reported]) -> Iterator[str]:
    """Yield the nodes that have no GPU at all, among equals with many."""
    if min(by_node.values()) < _MANY:
        return
    for node, summary in group:
        if not summary.whole:
            yield node.id


def _usual(by_node: Mapping[str, int]) -> int | None:
    """Return how many GPUs the nodes should have; None where nobody can tell.

    What most have; without a majority the most that any has, where that is a power of two and the
    others have an odd number of them, or none: 8 and 7 are a loss, 8 and 4 two ways to fill it.
    """
    counts = Counter(by_node.values())
    (usual, common), *minor = counts.most_common()
    if not minor or common > minor[0][1]:
        return usual
    most = max(counts)
    others = [count for count in counts if count != most]
    is_full = most >= _MANY and most & (most - 1) == 0
    return most if is_full and all(count % 2 or not count for count in others) else None


def _blocked(reported: Sequence[Reported]) -> Iterator[DifferenceDoc]:
    """Yield each cause that keeps GPUs from being used, with its nodes; what is meant is a hint."""
    causes: dict[tuple[bool, str], dict[str, int]] = {}
    evidence: dict[tuple[bool, str], set[str]] = {}
    for node, summary in reported:
        for gpu in summary.gpus:
            if gpu.blocked is not None:
                key = gpu.set_aside, gpu.blocked.partition(":")[0]
                evidence.setdefault(key, set()).add(gpu.blocked)
                nodes = causes.setdefault(key, {})
                nodes[node.id] = nodes.get(node.id, 0) + 1
    for (is_meant, step), by_node in sorted(causes.items()):
        yield difference(
            "blocked-gpus",
            "info" if is_meant else "warning",
            list(by_node),
            f"GPUs that are {'set aside' if is_meant else 'blocked'} at the step {step!r}",
            expected=None if is_meant else "0",
            values=_grouped({id_: str(count) for id_, count in by_node.items()}),
            cause="; ".join(sorted(evidence[is_meant, step])[:2]),
            fix="nothing, if that is intended" if is_meant else "run `probe doctor` on those nodes",
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
