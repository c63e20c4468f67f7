"""Walks over NVML's devices: one that fails costs its own figures, never another device."""

from __future__ import annotations

from probe_core.api import ask_each
from probe_nvidia import causes, health
from probe_nvidia.causes import (
    FUNCTION_NOT_FOUND,
    INVALID_ARGUMENT,
    NOT_FOUND,
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

    from probe_nvidia.scene import Scene

    Sighting = dict[str, Any]
    Answer = Iterator["Sighting | Refused | None"]

_NAMES = frozenset({"name", "uuid"})
"""What files of the kernel driver know, too."""

_EMPTY: tuple[object, ...] = ({}, [])


def devices(nvml: Any, scene: Scene) -> Iterator[Sighting]:
    """Yield every GPU and MIG instance that NVML shows, the GPUs that it does not, and findings.

    NVML stays initialised: the process that a prober runs in ends without cleaning up, and the
    kernel driver closes what it had open. A shutdown that hangs or crashes costs nothing so.
    """
    try:
        count = int(nvml.nvmlDeviceGetCount())
    except Exception as error:
        from probe_nvidia import files, wrong

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
        if self.failed or self.scene.excluded() or not self.seen.issuperset(self.expected):
            from probe_nvidia import unseen  # where all GPUs answer, nothing has to be explained

            yield from unseen.devices(self)

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
            from probe_nvidia.files import complete

            complete(scene, sighting, identity)
        if not sighting["ids"]:
            sighting["ids"] = [f"nvidia:index-{index}"]
        instances = None
        if mig_mode(asker):
            from probe_nvidia import mig  # most GPUs are not divided

            instances = mig.handles(asker)
            sighting["extra"]["mig"] = "enabled"
        sighting["nodes"] = scene.nodes(identity, asker)
        place = "a GPU" if index is None else f"GPU {index} of {self.count}"
        facts = health.facts(asker, sighting, place, instances)
        sighting["step_facts"] = [self.library, *facts]
        yield {field: value for field, value in sighting.items() if value not in _EMPTY}
        if instances:
            yield from mig.instances(asker, scene, sighting, instances)
        yield from health.findings(asker, sighting)


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
