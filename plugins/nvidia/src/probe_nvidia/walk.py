"""Walks over NVML's devices: one that fails costs its own figures, never another device."""

from __future__ import annotations

from probe_core.api import Unavailable, each_card
from probe_nvidia import causes, files, health, mig, wrong
from probe_nvidia.causes import (
    FUNCTION_NOT_FOUND,
    HANDLE,
    INVALID_ARGUMENT,
    NO_PERMISSION,
    NOT_FOUND,
    TABLE,
    code_of,
    reason_of,
)
from probe_nvidia.device import describe, mig_mode, pci_facts
from probe_nvidia.nvml import Asker, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from probe_nvidia.causes import Cause, Fact
    from probe_nvidia.scene import Scene

    Sighting = dict[str, Any]

_NAMES = frozenset({"name", "uuid"})
"""What files of the kernel driver know, too."""

_SILENT = "it hung or died in an earlier try of this probe, and was left alone in this one"
_GPUS = "start the container with the GPUs: --gpus all, or --device nvidia.com/gpu=all (CDI)"


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
        for identity, may_ask in each_card(self.scene.request, self.expected):
            if not may_ask:
                continue
            try:
                handle = self.nvml.nvmlDeviceGetHandleByPciBusId(_bus_id(identity))
            except Exception as error:
                code = code_of(error)
                if code == FUNCTION_NOT_FOUND:
                    return
                if code not in (NOT_FOUND, INVALID_ARGUMENT):
                    self._fail(identity, error, "nvmlDeviceGetHandleByPciBusId")
                continue
            asker = Asker(self.nvml, handle)
            yield from self._device(asker, asker.get(None, "nvmlDeviceGetIndex"), identity)

    def _by_index(self, in_order: bool) -> Iterator[Sighting]:
        if self.silent and not in_order:
            return  # which index is the silent GPU's is not known
        request = self.scene.request
        for index in range(self.count):
            name = self.expected[index] if in_order else f"nvidia:index-{index}"
            done = index in self.indexes or name in self.seen or name in self.failed
            if done or request.skip(name):
                continue
            request.touching(name)
            try:
                asker = Asker(self.nvml, self.nvml.nvmlDeviceGetHandleByIndex(index))
            except Exception as error:
                self._fail(index, error, "nvmlDeviceGetHandleByIndex")
                continue
            yield from self._device(asker, index, name)

    def _fail(self, key: int | str, error: Exception, call: str) -> None:
        self.failed[key] = code_of(error), reason_of(error, call)

    def _device(self, asker: Asker, index: int | None, announced: str) -> Iterator[Sighting]:
        """Yield one GPU; `announced` is the id under which it was announced."""
        scene = self.scene
        identity, numbers = pci_facts(asker)
        if identity in self.seen:
            return  # its index was not known when it was asked for by address
        if identity and identity != announced:
            scene.request.touching(identity)
        sighting = describe(asker, scene, index, identity)
        sighting["driver"] = self.driver
        if numbers:
            sighting["pci"] = numbers
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
        self._note(sighting, index)
        yield {field: value for field, value in sighting.items() if value not in ({}, [])}
        yield from mig.instances(asker, scene, sighting, instances or [])
        yield from health.findings(asker, sighting)

    def _note(self, sighting: Sighting, index: int | None) -> None:
        self.handles += 1
        self.seen.update(sighting["ids"])
        if index is not None:
            self.indexes.add(index)

    def _unseen(self) -> Iterator[Sighting]:
        """Yield each GPU of the kernel driver that NVML did not answer for, and why.

        Raises `Unavailable` where NVML shows none at all.
        """
        remaining = [i for i in self.expected if i not in self.seen | self.failed.keys()]
        silent = [identity for identity in remaining if identity in self.silent]
        remaining = [identity for identity in remaining if identity not in silent]
        nameless = [key for key in self.failed if isinstance(key, int)]
        # NVML's order is the PCI order: as many nameless failures as unseen GPUs are those GPUs.
        is_plain = len(nameless) == len(remaining)
        named = dict(zip(nameless, remaining, strict=True)) if is_plain else {}
        yield from self._failed(named)
        for identity in silent:
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
        names = ", ".join(self.expected)
        return Unavailable(
            f"NVML shows no GPU ({cause.why}), but the driver serves {names}",
            code="no-devices",
            fix=_GPUS if cause.code == "not-granted" else cause.fix,
        )


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


def _bus_id(identity: str) -> bytes:
    """Return a PCI id as NVML prints it: pci:0000:1b:00.0 is 00000000:1B:00.0."""
    domain, _, rest = identity[4:].partition(":")
    return f"{domain:0>8}:{rest}".upper().encode("ascii")
