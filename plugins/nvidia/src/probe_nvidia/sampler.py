"""Samples NVIDIA GPUs: NVML is initialised once, and only while none of them sleeps.

nvmlInit opens every NVIDIA GPU, so one that sleeps forbids it for all. With the library open no GPU
falls asleep; the core ends this process when they are idle.
"""

from __future__ import annotations

from time import monotonic

from probe_core.api import NotApplicable, Unavailable, not_applicable
from probe_core.sysfs.users import Users
from probe_nvidia.device import capability_of, mig_mode, pci_facts
from probe_nvidia.memory import INTEGRATED
from probe_nvidia.scene import Scene

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from probe_core.api import RawSample, SampleRequest
    from probe_core.sysfs.drm_use import DrmUse
    from probe_nvidia.live import Gpu

__all__ = ["Sampler"]

_FIRST_PID_NAMESPACE = 0xEFFF_FFFC
"""PROC_PID_INIT_INO of linux/proc_ns.h."""

_AGAIN_S = 300.0
"""Seconds until a library that could not be initialised is tried again: each attempt opens all
GPUs. A judgement: long beside the second between two rounds, short for whoever loads a driver."""


class Sampler:
    """The GPUs of a machine, between two rounds."""

    def __init__(self, request: SampleRequest) -> None:
        self._scene = Scene(request)
        # A process in a container is another one outside, and NVML counts outside.
        self._users = Users(request.machine) if _is_first_namespace() else None
        self._nvml: Any = None
        self._gpus: list[Gpu] = []
        self._skipped: frozenset[str] | None = None
        self._failure: Unavailable | None = None
        self._again = 0.0
        self._use: DrmUse | None = None

    def sample(self, request: SampleRequest) -> Iterator[Mapping[str, Any]] | NotApplicable:
        """Return the samples of a round; raises `Unavailable` when the library cannot be used."""
        scene = self._scene
        if not scene.evidence:
            return not_applicable("no NVIDIA device on the bus, no NVIDIA driver")
        if not scene.machine.live:
            return not_applicable("a recorded machine has no library to ask")
        if scene.reserved:
            return not_applicable("every NVIDIA GPU is reserved for virtual machines")
        if scene.soc:
            return self._module(request, scene.soc.ids[0])
        served = scene.reachable()
        asleep = [identity for identity in served if identity in request.asleep]
        if self._nvml is None and asleep:
            return self._left_alone(request, served, asleep)
        self._open(request)
        return self._samples(request)

    def _module(self, request: SampleRequest, identity: str) -> Iterator[Mapping[str, Any]]:
        """Yield the sample of a Jetson module's GPU.

        NVML opens there, and every query is NOT_SUPPORTED (intelligence-per-watt#40).
        """
        from probe_core.sysfs import devicetree, soc
        from probe_core.sysfs.drm_use import DrmUse

        machine = request.machine
        self._use = self._use or DrmUse(machine)
        self._use.refresh()
        request.touching(identity)
        for path, folder in devicetree.platform_devices(machine):
            if identity == f"dt:{path}" and not request.skip(identity):
                yield from soc.sample(machine, machine.realpath(folder), identity, self._use)

    def close(self) -> None:
        """Close the library, so that the GPUs may sleep."""
        if self._nvml is not None:
            self._nvml.nvmlShutdown()
            self._nvml = None

    def _left_alone(
        self, request: SampleRequest, served: list[str], asleep: list[str]
    ) -> Iterator[RawSample]:
        reason = f"NVML opens all GPUs when it starts, and would wake {', '.join(asleep)}"
        for identity in served:
            if not request.skip(identity):
                yield {"device": identity, "status": "unavailable", "reason": reason}

    def _open(self, request: SampleRequest) -> None:
        """Initialise the library, once; the handles are asked for with each new set of devices."""
        if self._failure is not None and monotonic() < self._again:
            raise self._failure
        if self._nvml is None:
            from probe_nvidia import library
            from probe_nvidia.live_nvml import LiveClient

            try:
                self._nvml = library.start(self._scene, LiveClient)
                self._failure = None
            except Unavailable as error:
                self._failure, self._again = error, monotonic() + _AGAIN_S
                raise

    def _samples(self, request: SampleRequest) -> Iterator[RawSample]:
        skipped = request.avoid | request.asleep
        if self._skipped != skipped:
            for gpu in self._gpus:
                gpu.close()
            self._gpus, self._skipped = [], None
            yield from self._find(request)
            self._skipped = skipped
            return
        for gpu in self._gpus:
            if not request.skip(gpu.id):
                request.touching(gpu.id)
                yield gpu.sample(self._scene.machine, self._users)

    def _find(self, request: SampleRequest) -> Iterator[RawSample]:
        """Ask for every GPU's handle, and sample each at once: one that hangs costs no other.

        Where NVML counts as many GPUs as the driver serves, an index means an address (NVML counts
        in PCI order); where it does not, only the handle says which GPU it is.
        """
        served = self._scene.reachable()
        count = int(self._nvml.nvmlDeviceGetCount())
        in_order = count == len(served)
        for index in range(count):
            name = served[index] if in_order else f"nvidia:index-{index}"
            if request.skip(name):
                continue
            request.touching(name)
            try:
                handle = self._nvml.nvmlDeviceGetHandleByIndex(index)
            except Exception as error:
                yield {"device": name, "status": "unavailable", "reason": _reason(error)}
                continue
            yield from self._first(request, handle, name)

    def _first(self, request: SampleRequest, handle: Any, name: str) -> Iterator[RawSample]:
        from probe_nvidia.ask import Asker
        from probe_nvidia.live import Gpu

        asker = Asker(self._nvml, handle)
        identity = pci_facts(asker)[0] or name
        if identity != name:
            if request.skip(identity):
                return
            request.touching(identity)
        integrated = capability_of(asker) in INTEGRATED
        gpus = [Gpu(self._nvml, handle, identity, integrated=integrated)]
        if mig_mode(asker):
            gpus += self._instances(asker, handle)
        for gpu in gpus:
            self._gpus.append(gpu)
            yield gpu.sample(self._scene.machine, self._users)

    def _instances(self, asker: Any, handle: Any) -> list[Gpu]:
        from probe_nvidia import mig
        from probe_nvidia.ask import Asker, text
        from probe_nvidia.live import Gpu

        gpus = []
        for _, instance in mig.handles(asker):
            own = Asker(self._nvml, instance)
            uuid = text(own.get(None, "nvmlDeviceGetUUID"))
            number = own.get(None, "nvmlDeviceGetGpuInstanceId")
            if uuid and number is not None:
                place = (handle, int(number))
                gpus.append(Gpu(self._nvml, instance, f"uuid:{uuid}", instance=place))
        return gpus


def _is_first_namespace() -> bool:
    """Return whether this process counts processes as the host does."""
    import os

    try:
        return os.stat("/proc/self/ns/pid").st_ino == _FIRST_PID_NAMESPACE
    except OSError:  # no Linux, or a kernel without namespaces
        return True


def _reason(error: Exception) -> str:
    from probe_nvidia.codes import code_of, name_of

    code = code_of(error)
    name = name_of(code) if code is not None else repr(error)
    return f"{name} from nvmlDeviceGetHandleByIndex"
