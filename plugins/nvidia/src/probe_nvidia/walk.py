"""Walks over NVML's devices: one that fails costs its own figures, never another device."""

from __future__ import annotations

from probe_core.api import Unavailable, ask_each
from probe_nvidia import causes, files, health, mig, wrong
from probe_nvidia.causes import (
    FUNCTION_NOT_FOUND,
    GPUS,
    HANDLE,
    INVALID_ARGUMENT,
    NO_PERMISSION,
    NOT_FOUND,
    TABLE,
    code_of,
    reason_of,
)
from probe_nvidia.device import (
    add_design,
    add_state,
    identify,
    mig_mode,
    pci_facts,
    read_fields,
)
from probe_nvidia.nvml import Asker, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from probe_nvidia.causes import Cause, Fact
    from probe_nvidia.scene import Scene

    Sighting = dict[str, Any]
    Answer = Iterator["Sighting | Refused | None"]

_NAMES = frozenset({"name", "uuid"})
"""What files of the kernel driver know, too."""

_SILENT = "it hung or died in an earlier try of this probe, and was left alone in this one"


def devices(nvml: Any, scene: Scene) -> Iterator[Sighting]:
    """Yield every GPU and MIG instance that NVML shows, the GPUs that it does not, and findings.

    NVML stays initialised: the process that a prober runs in ends without cleaning up, and the
    kernel driver closes what it had open. A shutdown that hangs or crashes costs nothing so.
    """
    try:
        count = int(nvml.nvmlDeviceGetCount())
    except Exception as error:
        yield from files.unavailable(scene, wrong.uncounted(error))
        return
    yield from Walk(nvml, scene, count).items()


class Refused:
    """A GPU whose handle NVML refused: its index or PCI id, and the code and reason."""

    __slots__ = ("code", "key", "reason")

    def __init__(self, key: int | str, error: Exception, call: str) -> None:
        self.key = key
        self.code = code_of(error)
        self.reason = reason_of(error, call)


class Walk:
    """One look at all GPUs: `expected` are the PCI ids that the kernel driver serves, in order.

    `seen` are the ids of the GPUs that were asked; `failed` maps NVML's index or a PCI id to the
    code and reason of a handle that was refused.
    """

    def __init__(self, nvml: Any, scene: Scene, count: int) -> None:
        self.nvml = nvml
        self.scene = scene
        self.count = count
        self.expected = scene.reachable()
        # Those that must not be touched: a process hung or died over them.
        self.silent = [identity for identity in self.expected if scene.request.skip(identity)]
        self.driver = _driver(nvml, scene)
        version = self.driver.get("version", "of unknown version")
        self.library = causes.fact("library", "ok", f"nvmlInit succeeded, driver {version}")
        self.seen: set[str] = set()
        self.handles = 0
        self.indexes: set[int] = set()
        self.failed: dict[int | str, tuple[int | None, str]] = {}
        self.boards: dict[tuple[str | None, ...], dict[tuple[Any, ...], Any]] = {}

    def items(self) -> Iterator[Sighting]:
        """Yield all GPUs, MIG instances and findings.

        NVML's order is the PCI order (nvmlDeviceGetHandleByIndex_v2 in NVIDIA's NVML API
        reference): where it counts as many as the driver serves, an index means an address. Where
        it does not, or one must not be touched, GPUs are asked for by address.
        """
        in_order = self.count == len(self.expected)
        if self.expected and self.count and (self.scene.request.avoid or not in_order):
            yield from self._by_address()
        if self.count > self.handles + len(self.failed) + len(self.silent):
            yield from self._by_index(in_order)
        yield from self._unseen()

    def _by_address(self) -> Iterator[Sighting]:
        for item in ask_each(self.scene.request, self.expected, self._ask_address):
            if isinstance(item, Refused) and item.code == FUNCTION_NOT_FOUND:
                return
            yield from self._take(item)

    def _ask_address(self, identity: str, may_ask: bool) -> Answer:
        if not may_ask:
            return
        try:
            handle = self.nvml.nvmlDeviceGetHandleByPciBusId(_bus_id(identity))
        except Exception as error:
            if code_of(error) not in (NOT_FOUND, INVALID_ARGUMENT):
                yield Refused(identity, error, "nvmlDeviceGetHandleByPciBusId")
            return
        asker = Asker(self.nvml, handle)
        yield from self._device(asker, asker.get(None, "nvmlDeviceGetIndex"), identity)

    def _by_index(self, in_order: bool) -> Iterator[Sighting]:
        if self.silent and not in_order:
            return  # which index is the silent GPU's is not known
        names = self.expected if in_order else [f"nvidia:index-{n}" for n in range(self.count)]
        known = self.seen | self.failed.keys()
        indexes = [n for n in range(self.count) if n not in self.indexes and names[n] not in known]

        def ask(index: int, may_ask: bool) -> Answer:
            return self._ask_index(index, names[index]) if may_ask else iter(())

        for item in ask_each(self.scene.request, indexes, ask, names.__getitem__):
            yield from self._take(item)

    def _ask_index(self, index: int, name: str) -> Answer:
        try:
            asker = Asker(self.nvml, self.nvml.nvmlDeviceGetHandleByIndex(index))
        except Exception as error:
            yield Refused(index, error, "nvmlDeviceGetHandleByIndex")
            return
        yield from self._device(asker, index, name)

    def _take(self, item: Sighting | Refused) -> Iterator[Sighting]:
        """Note what a GPU brought, in the order of the GPUs, and yield it unless it is a refusal.

        Here alone, since GPUs are asked in several threads where the driver is slow.
        """
        if isinstance(item, Refused):
            self.failed[item.key] = item.code, item.reason
            return
        if "finding" not in item and "parent" not in item:
            self.handles += 1
            self.seen.update(item["ids"])
            self.indexes.update(item.get("node_index", {}).values())
        yield item

    def _device(self, asker: Asker, index: int | None, announced: str) -> Answer:
        """Yield one GPU; `announced` is the id under which it was announced."""
        scene = self.scene
        identity, numbers = pci_facts(asker)
        if identity in self.seen:
            return  # its index was not known when it was asked for by address
        if identity and identity != announced:
            scene.request.touching(identity)
        file = scene.proc.get(identity) if identity else None
        # The driver's own file, read before: each call of NVML may be a request to the driver.
        sighting = identify(asker, index, identity, numbers, file.model if file else None)
        if numbers:
            kind = numbers["id"], numbers.get("subsystem"), sighting.get("name")
            asker.board = self.boards.setdefault(kind, {})
        add_design(asker, sighting)
        values = read_fields(asker, sighting)
        yield None  # where it has been slow so far, the other GPUs are asked beside it
        add_state(asker, scene, sighting, identity, values)
        sighting["driver"] = self.driver
        if scene.soc or not _NAMES.isdisjoint(sighting["unknown"]):
            files.complete(scene, sighting, identity)
        if not sighting["ids"]:
            sighting["ids"] = [f"nvidia:index-{index}"]
        instances = mig.handles(asker) if mig_mode(asker) else None
        if instances is not None:
            sighting["extra"]["mig"] = "enabled"
        sighting["nodes"] = scene.nodes(identity, asker)
        place = "a GPU" if index is None else f"GPU {index} of {self.count}"
        facts = health.facts(asker, sighting, place, instances)
        sighting["step_facts"] = [self.library, *facts]
        yield {field: value for field, value in sighting.items() if value not in ({}, [])}
        yield from mig.instances(asker, scene, sighting, instances or [])
        yield from health.findings(asker, sighting)

    def _unseen(self) -> Iterator[Sighting]:
        """Yield each GPU of the kernel driver that NVML did not answer for, and why.

        Raises `Unavailable` where NVML shows none at all.
        """
        unseen = [i for i in self.expected if i not in self.seen | self.failed.keys()]
        remaining = [identity for identity in unseen if identity not in self.silent]
        nameless = [key for key in self.failed if isinstance(key, int)]
        # NVML's order is the PCI order: as many nameless failures as unseen GPUs are those GPUs.
        is_plain = len(nameless) == len(remaining)
        named = dict(zip(nameless, remaining, strict=True)) if is_plain else {}
        yield from self._failed(named)
        for identity in unseen:
            if identity in self.silent:
                fact = causes.broken("responding", "driver-hangs", _SILENT)
                yield self._card(identity, _SILENT, fact)
        left_out = [*(remaining if not nameless else ()), *self.scene.excluded()]
        why = {identity: wrong.gpu_cause(self.scene, identity) for identity in left_out}
        yield from self._left_out(why)
        if why and not self.count:
            raise self._none(next(iter(why.values())))

    def _failed(self, named: dict[int, str]) -> Iterator[Sighting]:
        """Yield the GPUs that NVML counts and gives no handle for; `named` are ids by index."""
        for key, (code, reason) in self.failed.items():
            identity = named.get(key) if isinstance(key, int) else key
            cause = TABLE.get((HANDLE, code), TABLE[HANDLE, None])
            if identity is None:
                yield cause.finding(f"GPU number {key} of NVML", None, reason)
                continue
            if code == NO_PERMISSION:
                cause = wrong.gpu_cause(self.scene, identity, refused=True)
            sighting = self._card(identity, reason, cause.fact(reason))
            if isinstance(key, int):
                sighting["node_index"] = {"nvml": key}
            if code == NO_PERMISSION:  # of what was not granted, the core makes a finding
                yield sighting
                continue
            yield sighting | {"power_state": "unknown"}
            yield cause.finding(f"GPU {identity}", identity, reason)

    def _left_out(self, why: dict[str, Cause]) -> Iterator[Sighting]:
        """Yield the GPUs that NVML does not list, and one finding for each cause."""
        total = len(self.expected) + len(self.scene.excluded())
        evidence = f"NVML lists {self.count} of {total} GPUs, not this one"
        groups: dict[str, tuple[Cause, list[str]]] = {}
        for identity, cause in why.items():
            is_excluded = cause.code == "gpu-excluded"
            fact = wrong.excluded(identity) if is_excluded else cause.fact(evidence)
            yield self._card(identity, fact["evidence"], fact)
            groups.setdefault(str(cause.code), (cause, []))[1].append(identity)
        for cause, ids in groups.values():
            if self.count:
                yield cause.finding(", ".join(ids), ids[0], evidence)

    def _card(self, identity: str, reason: str, fact: Fact) -> Sighting:
        sighting = files.card(self.scene, identity, reason, files.UNREAD)
        return sighting | {"step_facts": [self.library, fact]}

    def _none(self, cause: Cause) -> Unavailable:
        """Return why a library that works shows nothing of what the kernel driver serves."""
        names, option = ", ".join(self.expected), wrong.container_option(self.scene)
        return Unavailable(
            f"NVML shows no GPU ({cause.why}), but the driver serves {names}",
            code="no-devices",
            fix=GPUS.format(option=option) if cause.code == "not-granted" else cause.fix,
        )


def _driver(nvml: Any, scene: Scene) -> dict[str, str]:
    version = scene.version or text(_quietly(nvml, "nvmlSystemGetDriverVersion"))
    cuda = _quietly(nvml, "nvmlSystemGetCudaDriverVersion_v2")
    cuda = cuda or _quietly(nvml, "nvmlSystemGetCudaDriverVersion")
    driver = {"name": "nvidia", "version": version}
    if cuda:
        driver["cuda"] = f"{cuda // 1000}.{cuda % 1000 // 10}"  # 13000 is 13.0
    return {name: value for name, value in driver.items() if value}


def _quietly(nvml: Any, call: str) -> Any:
    """Call what no device is needed for; None when it fails or is not there."""
    try:
        return getattr(nvml, call)()
    except Exception:
        return None


def _bus_id(identity: str) -> bytes:
    """Return a PCI id as NVML prints it: pci:0000:1b:00.0 is 00000000:1B:00.0."""
    domain, _, rest = identity[4:].partition(":")
    return f"{domain:0>8}:{rest}".upper().encode("ascii")
