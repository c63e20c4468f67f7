"""Walks over NVML's devices: one that fails costs its own figures, never another device."""

from __future__ import annotations

from probe_nvidia import facts
from probe_nvidia.ask import Asker, text
from probe_nvidia.codes import FUNCTION_NOT_FOUND, INVALID_ARGUMENT, NOT_FOUND, code_of, name_of
from probe_nvidia.device import describe, mig_mode, pci_facts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from probe_nvidia.scene import Scene

    Sighting = dict[str, Any]

__all__ = ["Walk", "devices"]

_NAMES = frozenset({"name", "uuid"})
"""What files of the kernel driver know, too."""

_BY_INDEX = "nvmlDeviceGetHandleByIndex"
_BY_ADDRESS = "nvmlDeviceGetHandleByPciBusId"


def devices(nvml: Any, scene: Scene) -> Iterator[Sighting]:
    """Yield every GPU and MIG instance that NVML shows, the GPUs that it does not, and findings.

    NVML stays initialised: the process that a prober runs in ends without cleaning up, and the
    kernel driver closes what it had open. A shutdown that hangs or crashes costs nothing so.
    """
    try:
        count = int(nvml.nvmlDeviceGetCount())
    except Exception as error:
        from probe_nvidia import passive

        yield from passive.uncounted(scene, code_of(error), _reason(error, "nvmlDeviceGetCount"))
        return
    yield from Walk(nvml, scene, count).items()


class Walk:
    """One look at all GPUs: `expected` are the PCI ids that the kernel driver serves, in order.

    `seen` are the ids of the GPUs that were asked; `failed` maps NVML's index or a PCI id to the
    code and reason of a handle that was refused.
    """

    __slots__ = (
        "count",
        "driver",
        "expected",
        "failed",
        "handles",
        "indexes",
        "library",
        "nvml",
        "scene",
        "seen",
    )

    def __init__(self, nvml: Any, scene: Scene, count: int) -> None:
        self.nvml = nvml
        self.scene = scene
        self.count = count
        self.expected = scene.reachable()
        self.driver = _driver(nvml, scene)
        version = self.driver.get("version", "of unknown version")
        self.library = facts.fact("library", "ok", f"nvmlInit succeeded, driver {version}")
        self.seen: set[str] = set()
        self.handles = 0
        self.indexes: set[int] = set()
        self.failed: dict[int | str, tuple[int | None, str]] = {}

    def items(self) -> Iterator[Sighting]:
        """Yield all GPUs, MIG instances and findings.

        NVML's order is the PCI order (nvmlDeviceGetHandleByIndex_v2 in NVIDIA's NVML API
        reference): where it counts as many as the driver serves, an index means an address. Where
        it does not, or one must not be touched, GPUs are asked for by address.
        """
        in_order = self.count == len(self.expected)
        if self.expected and self.count and (self.scene.avoid or not in_order):
            yield from self._by_address()
        if self.count > self.handles + len(self.failed) + len(self.silent()):
            yield from self._by_index(in_order)
        if self.failed or not self.seen.issuperset(self.expected) or self.scene.excluded():
            from probe_nvidia import unseen

            yield from unseen.account(self)

    def silent(self) -> list[str]:
        """Return the PCI ids of the GPUs that must not be touched."""
        return [identity for identity in self.expected if identity in self.scene.avoid]

    def _by_address(self) -> Iterator[Sighting]:
        for identity in self.expected:
            if identity in self.scene.avoid:
                continue
            self.scene.touching(identity)
            try:
                handle = self.nvml.nvmlDeviceGetHandleByPciBusId(_bus_id(identity))
            except Exception as error:
                code = code_of(error)
                if code == FUNCTION_NOT_FOUND:
                    return
                if code not in (NOT_FOUND, INVALID_ARGUMENT):
                    self.failed[identity] = code, _reason(error, _BY_ADDRESS)
                continue
            asker = Asker(self.nvml, handle)
            yield from self._device(asker, asker.get(None, "nvmlDeviceGetIndex"), identity)

    def _by_index(self, in_order: bool) -> Iterator[Sighting]:
        if self.silent() and not in_order:
            return  # which index is the silent GPU's is not known
        for index in range(self.count):
            name = self.expected[index] if in_order else f"nvidia:index-{index}"
            done = index in self.indexes or name in self.seen or name in self.failed
            if done or name in self.scene.avoid:
                continue
            self.scene.touching(name)
            try:
                asker = Asker(self.nvml, self.nvml.nvmlDeviceGetHandleByIndex(index))
            except Exception as error:
                self.failed[index] = code_of(error), _reason(error, _BY_INDEX)
                continue
            yield from self._device(asker, index, name)

    def _device(self, asker: Asker, index: int | None, announced: str) -> Iterator[Sighting]:
        """Yield one GPU; `announced` is the id under which it was announced."""
        scene = self.scene
        identity, numbers = pci_facts(asker)
        if identity in self.seen:
            return  # its index was not known when it was asked for by address
        if identity and identity != announced:
            scene.touching(identity)
        sighting = describe(asker, scene, index, identity)
        sighting["driver"] = self.driver
        if numbers:
            sighting["pci"] = numbers
        if scene.soc or not _NAMES.isdisjoint(sighting["unknown"]):
            from probe_nvidia import completion

            completion.complete(scene, sighting, identity)
        if not sighting["ids"]:
            sighting["ids"] = [f"nvidia:index-{index}"]
        instances = self._instances(asker, sighting)
        sighting["nodes"] = scene.nodes(identity, asker)
        self._judge(asker, sighting, index, instances)
        self._note(sighting, index)
        yield {field: value for field, value in sighting.items() if value not in ({}, [])}
        if instances:
            from probe_nvidia import mig

            yield from mig.instances(asker, scene, sighting, instances)
        if asker.faults or _is_remarkable(sighting):
            from probe_nvidia import findings

            yield from findings.of_device(asker, sighting)

    def _judge(
        self,
        asker: Asker,
        sighting: Sighting,
        index: int | None,
        instances: list[tuple[int, Any]] | None,
    ) -> None:
        place = "a GPU" if index is None else f"GPU {index} of {self.count}"
        judged = facts.of_device(asker, sighting, place, instances)
        sighting["step_facts"] = [self.library, *judged]

    def _note(self, sighting: Sighting, index: int | None) -> None:
        self.handles += 1
        self.seen.update(sighting["ids"])
        if index is not None:
            self.indexes.add(index)

    def _instances(self, asker: Asker, sighting: Sighting) -> list[tuple[int, Any]] | None:
        if not mig_mode(asker):
            return None
        from probe_nvidia import mig

        sighting["extra"]["mig"] = "enabled"
        return mig.handles(asker)


def _is_remarkable(sighting: Sighting) -> bool:
    if sighting["extra"].get("virtualization") == "vgpu":
        return True
    return any(step["status"] == "broken" for step in sighting["step_facts"])


def _driver(nvml: Any, scene: Scene) -> dict[str, str]:
    version = text(_quietly(nvml, "nvmlSystemGetDriverVersion")) or scene.version
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


def _bus_id(identity: str) -> str:
    """Return a PCI id as NVML prints it: pci:0000:1b:00.0 is 00000000:1B:00.0."""
    domain, _, rest = identity[4:].partition(":")
    return f"{domain:0>8}:{rest}".upper()


def _reason(error: Exception, call: str) -> str:
    code = code_of(error)
    return f"{name_of(code)} from {call}" if code is not None else f"{call}: {error!r}"
