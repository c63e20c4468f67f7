"""The report as one value, the machine itself, and what its probers did.

Each field is declared here, and nowhere else, as those of a device are in `device`.
"""

from __future__ import annotations

import marshal

from probe_core.model.device import Device
from probe_core.model.field import (
    FLAG,
    TEXT,
    Choice,
    Free,
    FreeTable,
    Items,
    Number,
    TableOf,
    Text,
    View,
    field,
    fields_of,
    part,
)
from probe_core.model.field import Field as F
from probe_core.model.ids import ACCELERATORS, SEVERITIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, NoReturn, TypeVar

    from probe_core.model.document import NetworkDoc, ReportDoc

    Made = TypeVar("Made")
    Dict = dict[str, Any]
else:
    Dict = dict

# The views of a document's parts, and the read-only plain data that they hold.


class FrozenTable(Dict):
    """A table that cannot be changed. Equal to a dict with the same items, and hashable.

    A dict, not a `types.MappingProxyType`: that one can neither be pickled nor deep-copied, so a
    report could not be sent to another process (multiprocessing, Ray).
    """

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[type[FrozenTable], tuple[dict[str, Any]]]:
        return FrozenTable, (dict(self),)

    def copy(self, _: object = None) -> FrozenTable:
        """Return itself, as all ways to copy it do: nothing in it can change."""
        return self

    __copy__ = __deepcopy__ = copy

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("a report cannot be changed; to_json() gives a document that can")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse


_NESTED = (dict, list, tuple)
_FLAT = Free.scalars | {type(None)}
_PLAIN_FORMAT = 4
"""Of marshal: twice as fast as the second one, which has no references."""

ALIKE_AT = 3
"""How deep the parts lie that are alike: a report (0) has devices (1) that differ each (2), and
eight of one kind have the same peaks, sources and clocks (3). Looking elsewhere, too, took longer
than it saved."""

EMPTY = FrozenTable()
"""The empty table, as a default."""


def freeze(value: Any) -> Any:
    """Return plain JSON data with read-only tables, and tuples instead of lists.

    Equal parts of a report's devices become one: eight GPUs of one kind have each peak, link and
    step of readiness eight times.
    """
    return _frozen(value, {}, 0) if isinstance(value, _NESTED) else value


def _frozen(value: Any, known: dict[bytes, Any], depth: int) -> Any:
    """Return a table or list frozen; `known` has the parts that were met, by their data."""
    if isinstance(value, FrozenTable):
        return value
    key = plain_bytes(value) if depth == ALIKE_AT else None
    if key is None:
        return _made(value, known, depth + 1)
    found = known.get(key)
    if found is None:
        found = known[key] = _made(value, known, depth + 1)
    return found


def _made(value: Any, known: dict[bytes, Any], depth: int) -> Any:
    if isinstance(value, dict):
        if _FLAT.issuperset(map(type, value.values())):  # as most tables are
            return FrozenTable(value)
        return FrozenTable(
            {
                name: _frozen(item, known, depth) if isinstance(item, _NESTED) else item
                for name, item in value.items()
            }
        )
    if _FLAT.issuperset(map(type, value)):
        return tuple(value)
    return tuple(
        [_frozen(item, known, depth) if isinstance(item, _NESTED) else item for item in value]
    )


def plain_bytes(value: Any) -> bytes | None:
    """Return bytes that are the same for equal data of the same types alone; None without any.

    True is not 1 and 1.0 is not 1 here, unlike in a comparison: which of them stands in a report
    matters. Equal data may have other bytes where somebody else holds parts of one of them, as a
    view of an earlier report does: then it is looked at once more.
    """
    try:
        return marshal.dumps(value, _PLAIN_FORMAT)
    except ValueError:  # it holds what is frozen already, or no JSON, which is checked elsewhere
        return None


def thaw(value: Any) -> Any:
    """Return frozen data as plain JSON data that may be changed."""
    if isinstance(value, dict):
        return {name: thaw(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return [thaw(item) for item in value]
    return value


def view(
    kind: type[Made],
    table: Mapping[str, Any],
    made: dict[tuple[int, type], Any] | None = None,
    **private: object,
) -> Made:
    """Return `kind` with the keys of `table` that it has; what a newer core added is left out.

    The view holds the document's own frozen tables, not copies. Keys that an older core did not
    write get the stand-in that the table of fields names. A part that stands in several places has
    one view: `made` has them, by the number of the table or tuple and the class.
    """
    assert issubclass(kind, View)
    made = {} if made is None else made
    new = object.__new__(kind)
    keep, known = object.__setattr__, kind.__fields__
    for name in kind.__types__:
        declared, value = known.get(name), table.get(name)
        if declared is None:
            value = private.get(name.lstrip("_"), kind.__private__[name])
        elif value is None:
            value = stand_in(declared)
        elif declared.view is not None:
            value = _inner(declared.view, value, made)
        keep(new, name, value)
    return new


def _inner(kind: type[View], part: Any, made: dict[tuple[int, type], Any]) -> Any:
    """Return the view of a table, or the views of a tuple of tables."""
    key = id(part), kind
    found = made.get(key)
    if found is None:
        found = made[key] = (
            tuple([_inner(kind, item, made) for item in part])
            if isinstance(part, tuple)
            else view(kind, part, made)
        )
    return found


def stand_in(field: F) -> object:
    """Return the value of a field that a document does not have."""
    if isinstance(field.value, Items):
        return ()
    if field.single and field.view is not None:
        return field.view()
    return EMPTY if field.empty == {} else field.empty


BYTES = Number(whole=True)
COUNT = Number(whole=True)

FALLBACKS = ("no-accelerator", "degraded")


@part
class NodeMemory(View):
    """The system's memory, in bytes."""

    total: int | None = field(BYTES, "All of the machine's memory", unit="bytes", always=True)
    available: int | None = field(
        BYTES,
        "What can be taken now without swapping, within the limit",
        unit="bytes",
        always=True,
        volatile=True,
    )
    limit: int | None = field(
        BYTES,
        "The smallest limit of the cgroups this process is in; null without one",
        unit="bytes",
        always=True,
    )
    limited_by: str | None = field(
        TEXT, "Where that limit is written: the path of a control group's file", added=True
    )
    devices: int | None = field(
        BYTES,
        "Memory of GPUs that the kernel lists as NUMA nodes; not a part of the others",
        unit="bytes",
        added=True,
    )


@part
class Node(View):
    """The machine itself."""

    os: str | None = field(
        TEXT,
        "linux, darwin, windows, or what Python calls the system",
        always=True,
        nullable=False,
    )
    kernel: str | None = field(TEXT, "Release of the kernel", always=True)
    arch: str | None = field(
        TEXT, "Architecture as uname -m names it: x86_64, aarch64", always=True, nullable=False
    )
    model: str | None = field(
        TEXT, "The board's or product's name, as firmware gives it", always=True
    )
    id: str | None = field(
        TEXT,
        "Stable id of the node: a keyed hash of its machine id; null where there is none, in a"
        " container of an image, and with the setting anonymous",
        always=True,
        added=True,
    )
    host: str | None = field(
        TEXT, "The host's name, with the setting hostname", always=True, added=True
    )
    time: str | None = field(
        TEXT,
        "When it was probed: UTC, as 2026-11-22T09:30:00.000Z, which sorts as text; null of a"
        " recorded machine",
        always=True,
        volatile=True,
        added=True,
    )
    container: str | None = field(
        TEXT,
        "kubernetes, apptainer, docker, podman, lxc, systemd-nspawn, flatpak, snap or"
        " container; null in none that shows itself",
        always=True,
        added=True,
    )
    vm: str | None = field(
        TEXT,
        "Kind of virtual machine: kvm, qemu, vmware, hyper-v, xen, wsl …; vm where the kind is"
        " not known; null in none that shows itself",
        always=True,
        added=True,
    )
    cgroup: str | None = field(
        TEXT,
        "Who made the cgroup of this process: slurm, kubernetes, docker, podman, lxc, user,"
        " system, machine, root or other",
        always=True,
        added=True,
    )
    memory: NodeMemory = field(
        FreeTable(), "The system's memory", empty={}, part=NodeMemory, shape="node_memory"
    )
    network: tuple[NetworkDoc, ...] = field(
        Items(FreeTable(), limit=256),
        "Links to other nodes: interfaces of hardware, RDMA ports, Thunderbolt connections; no"
        " packet is sent",
        always=False,
        empty=[],
        fields="NETWORK",
        shape="network",
        added=True,
    )


@part
class Outcome(View):
    """How one prober's run ended."""

    prober: str = field(TEXT, "Its name", empty="")
    distribution: str = field(TEXT, "The distribution that ships it, with version", empty="")
    status: str = field(TEXT, "How it ended", empty="")
    reason: str | None = field(
        Text(least=1), "Why; never null unless the status is ok", always=True
    )
    partial: bool = field(FLAG, "Whether devices arrived before it failed", empty=False)
    devices: int = field(COUNT, "How many devices it reported", unit="count", empty=0)
    elapsed_ms: float = field(Number(), "How long it took", unit="milliseconds", empty=0)
    code: str | None = field(TEXT, "The prober's own word for why, for scripts")
    fix: str | None = field(TEXT, "What would help")
    phase: str | None = field(
        Choice("start", "import", "call", "cleanup"),
        "Where it failed: start (its process), import (its module), call (its hook) or cleanup"
        " (after all its devices were read)",
    )
    signal: str | None = field(TEXT, "Name of the signal that killed its process: SIGSEGV")
    exit_status: int | None = field(
        COUNT, "Status with which its process exited before it had answered", unit="number"
    )
    stuck_at: str | None = field(
        TEXT, "The line that ran at the deadline: /path/prober.py:5 in probe_devices"
    )
    avoided: tuple[str, ...] = field(
        Items(TEXT),
        "Devices over which its process hung, died or raised; another process read the others",
    )
    replayed: bool | None = field(
        FLAG, "Whether it is the answer of a recording, and no process ran"
    )
    stderr: tuple[str, ...] = field(
        Items(TEXT),
        "The last lines that it wrote, where it failed or `verbose` is set",
        always=False,
        empty=[],
    )


@part
class Decision(View):
    """Whether a prober was run."""

    prober: str = field(TEXT, "Its name", empty="")
    distribution: str = field(TEXT, "The distribution that ships it, with version", empty="")
    selected: bool = field(FLAG, "Whether it was run", empty=False)
    cause: str | None = field(
        TEXT,
        "Word for scripts: blocked, when, api, shadowed, trust, sealed, active, veto,"
        " unkillable, rejected, no-child",
    )
    reason: str | None = field(TEXT, "Why it was not run; null when it was", always=True)
    priority: int = field(
        COUNT,
        "Its priority from 1 to 999, after the settings",
        unit="1 to 999",
        always=False,
        empty=100,
    )
    deadline_s: float = field(
        Number(1e-6), "Its deadline, after the settings", unit="seconds", always=False, empty=5.0
    )
    active: bool = field(FLAG, "Whether it opens devices", always=False, empty=False)
    setting: str | None = field(
        TEXT, "The setting that kept it from running, by its name in the settings"
    )
    variable: str | None = field(TEXT, "The environment variable that set it")


@part
class Finding(View):
    """Something a person should know."""

    code: str = field(
        Text(least=1),
        "Word for scripts: see the core's list of codes; probers add theirs",
        empty="",
    )
    what: str = field(Text(least=1), "What was found", empty="")
    why: str = field(Text(least=1), "Its cause", empty="")
    fix: str = field(Text(least=1), "What would help", empty="")
    severity: str = field(
        Choice(*SEVERITIES), "info, warning or error", empty="info", before="what"
    )
    device: str | None = field(TEXT, "Id of the device it is about", always=True)
    prober: str | None = field(
        TEXT, "Name of the prober it is about, or that reported it", always=True, added=True
    )
    setting: str | None = field(
        TEXT, "The setting that matters, by its name in the settings", always=True, added=True
    )
    variable: str | None = field(
        TEXT, "The environment variable that matters", always=True, added=True
    )
    step: str | None = field(TEXT, "The step of readiness that it breaks", always=True, added=True)
    evidence: str | None = field(
        TEXT,
        "What it was read from: a path and its content, an error code, a library's own text",
        always=True,
        added=True,
    )


@part
class Report(View):
    """What this node is."""

    node: Node = field(FreeTable(), "The machine itself", empty={}, part=Node, shape="node")
    devices: tuple[Device, ...] = field(
        Items(FreeTable(), least=1),
        "GPUs, other accelerators, CPUs, displays; a part follows its parent",
        empty=[],
        part=Device,
        shape="device",
    )
    primary: str | None = field(
        TEXT, "Id of the device to use first", always=True, before="devices"
    )
    outcomes: tuple[Outcome, ...] = field(
        Items(FreeTable()), "How each prober's run ended", empty=[], part=Outcome, shape="outcome"
    )
    decisions: tuple[Decision, ...] = field(
        Items(FreeTable()),
        "Which probers were run, and why the others were not",
        empty=[],
        part=Decision,
        shape="decision",
    )
    findings: tuple[Finding, ...] = field(
        Items(FreeTable()),
        "What a person should know, worst first",
        empty=[],
        part=Finding,
        shape="finding",
    )
    fallback: str | None = field(
        Choice(*FALLBACKS),
        "null when an accelerator is primary; no-accelerator when there is none; degraded when"
        " something failed, so that there may be one",
        always=True,
        before="findings",
    )
    chipdb: str | None = field(
        TEXT, "Version of the chip data; null without chipdb", always=True, before="node"
    )
    probe_core: str = field(
        TEXT, "Version of the core that made the report", empty="", before="chipdb"
    )
    timings_ms: Mapping[str, float] = field(
        TableOf(Number()), "Milliseconds per step, and their total", unit="milliseconds", empty={}
    )
    asked = field(
        TableOf(FreeTable()),
        "Runtime to what it itself showed, where the user allowed to open devices",
    )
    expected = field(
        FreeTable(),
        "What should be here, where a person or a saved baseline says so: `source`, `text`,"
        " `count`, and what is `absent`, `extra`, `unlike` or `unknown`",
    )
    schema: int = field(
        COUNT,
        "Number of this schema; raised only when a field changes its meaning or goes away",
        unit="number",
        empty=1,
        before="probe_core",
    )

    _document: FrozenTable = EMPTY

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Report:
        """Return the view of a document; fields it does not have keep their defaults.

        Fields that this version does not know stay in `to_json()`. Raises `ValueError` for a
        document of another schema, without devices, or with a field of the wrong type, which the
        message names.
        """
        from probe_core.model.complete import check  # here: what a probe made needs no check

        if document.get("schema") != 1:
            raise ValueError(f"a report of schema {document.get('schema')!r}; this core reads 1")
        frozen: FrozenTable = freeze(document if isinstance(document, dict) else dict(document))
        check(frozen, REPORT)
        if not frozen.get("devices"):
            raise ValueError("the report has no devices")
        return view(cls, frozen, document=frozen)

    @classmethod
    def of(cls, document: ReportDoc) -> Report:
        """Return the view of a document that is known to be sound: what the core itself made."""
        frozen: FrozenTable = freeze(document)
        return view(cls, frozen, document=frozen)

    def to_json(self) -> ReportDoc:
        """Return the document as plain data, to be changed at will."""
        document: ReportDoc = thaw(self._document)
        return document

    @property
    def primary_device(self) -> Device:
        """The device to use first; the CPU when there is no accelerator."""
        return next((d for d in self.devices if d.id == self.primary), self.devices[0])

    @property
    def accelerators(self) -> tuple[Device, ...]:
        """GPUs, NPUs and other accelerators, hidden ones too."""
        return tuple(d for d in self.devices if d.kind in ACCELERATORS)

    def device(self, identity: str) -> Device | None:
        """Return the device that has this id, or None."""
        return next((d for d in self.devices if identity in d.ids or d.id == identity), None)

    def visible(self, runtime: str) -> tuple[Device, ...]:
        """Return the devices that a runtime (``cuda``, ``hip`` …) surely shows, in its order.

        A device that a step of its readiness keeps from this process is not among them.
        """
        from probe_core.model.views import visible  # here: most hosts never ask

        return visible(self.devices, runtime)

    def __iter__(self) -> Iterator[Device]:
        return iter(self.devices)

    def __repr__(self) -> str:
        from probe_core.model.notebook import summary

        return f"Report({summary(self)})"

    def _repr_html_(self) -> str:
        """Return the devices as a table, for a notebook."""
        from probe_core.model.notebook import html

        return html(self)


REPORT = fields_of(Report)
"""Name to field of a report, in the document's order."""
