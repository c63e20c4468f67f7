"""Containers: what the engine knows of the host's driver, and memory that processes share."""

from __future__ import annotations

from probe_core.doctor.causes import of_cause
from probe_core.doctor.check import REPORT, check, failed, not_applicable, passed, unknown
from probe_core.machine.engines import OPERATOR_ROOT, TOOLKIT, driver_of_operator
from probe_core.model.ids import ACCELERATORS
from probe_core.readiness.fixes import OPERATOR
from probe_core.readiness.library import version_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from probe_core.doctor.check import Request, ResultDoc
    from probe_core.machine import Machine

# Folders of CDI specifications (CDI's SPEC.md); nvidia-ctk writes nvidia.yaml into the first, its
# service into the second.
CDI_FOLDERS = ("/etc/cdi", "/var/run/cdi", "/run/cdi")
LIBCUDA = "libcuda.so."
DRM = "/sys/class/drm"
_KIND, _MIG = "nvidia.com/gpu", "/dev/nvidia-caps/"
_NODE_KEYS = ("path", "hostPath")
"""Keys of a device node (CDI's SPEC.md, containerEdits.deviceNodes)."""

MOUNTS = "/proc/self/mounts"
_SMALL = 64 << 20
"""Docker's own size of /dev/shm (docker run --shm-size)."""


@check("cdi-spec-stale", step="node", needs=(REPORT, *CDI_FOLDERS, DRM))
def specification(request: Request) -> ResultDoc:
    """Whether a CDI specification names libraries of another driver, or nodes that are gone."""
    version = version_of(request.scene.nvidia_version)
    if request.scene.container is not None or version is None:
        return not_applicable("this is no host with NVIDIA's driver")
    listed = list(specifications(request.machine))
    for path, text in listed:
        versions = {word for word in driver_versions(text) if "." in word}
        if versions and version not in versions:
            evidence = f"{path} names {LIBCUDA}{sorted(versions)[0]}; the driver is {version}"
            return failed(of_cause(request, "cdi-spec-stale", evidence))
        if gone := _gone(text, request.machine):
            evidence = f"{path} names {gone}, and {DRM} has no {gone.rpartition('/')[2]}"
            return failed(of_cause(request, "cdi-spec-stale", evidence))
    if evidence := _unnamed(request, listed):
        return failed(of_cause(request, "cdi-spec-stale", evidence))
    return passed() if listed else not_applicable("no CDI specification is here")


def _gone(text: str, machine: Machine) -> str | None:
    """Return a node of the kernel's graphics that a specification names and no device has.

    The engine then refuses to start the container (nvidia-container-toolkit#885).
    """
    there = machine.listdir(DRM)
    for node in _values(text, _NODE_KEYS) if there else ():
        folder, _, name = node.rpartition("/")
        if folder == "/dev/dri" and name not in there:
            return node
    return None


def _unnamed(request: Request, listed: Iterable[tuple[str, str]]) -> str:
    """Return evidence of a MIG instance that is younger than the specifications; "" of none.

    Those of nvidia-ctk have all; a device plugin's, of a kind of its own, may leave instances out.
    """
    own = {path: text for path, text in listed if _KIND in _values(text, ("kind",))}
    named = {node for text in own.values() for node in _values(text, _NODE_KEYS)}
    nodes = (node for device in request.report["devices"] for node in device.get("nodes") or ())
    young = next((node for node in nodes if node.startswith(_MIG) and node not in named), None)
    return f"{', '.join(own)} has no {young}, of a MIG instance" if own and young else ""


def _values(text: str, keys: tuple[str, ...]) -> Iterator[str]:
    """Yield the values of keys, of lines of YAML or of JSON."""
    for line in text.splitlines():
        key, _, value = line.strip().lstrip("- ").partition(":")
        if key.strip('"') in keys:
            yield value.strip(' ",')


def specifications(machine: Machine) -> Iterator[tuple[str, str]]:
    """Yield path and text of each CDI specification of NVIDIA's devices."""
    for folder in CDI_FOLDERS:
        for name in machine.listdir(folder)[:64]:
            path = f"{folder}/{name}"
            text = machine.read(path) if name.endswith((".yaml", ".json")) else None
            if text and "nvidia.com/gpu" in text:
                yield path, text


def driver_versions(text: str) -> Iterator[str]:
    """Yield "580.95.05" of each libcuda.so.580.95.05 that a specification mounts."""
    for part in text.split(LIBCUDA)[1:]:
        yield _number(part)


def _number(text: str) -> str:
    length = next((at for at, char in enumerate(text) if char not in "0123456789."), len(text))
    return text[:length].strip(".")


@check("toolkit-root-gone", step="node", needs=(TOOLKIT, OPERATOR))
def toolkit(request: Request) -> ResultDoc:
    """Whether the container toolkit looks for a driver of NVIDIA's operator that is not there.

    The driver is the host's then, and each container fails (nvidia-docker#1711).
    """
    if request.scene.container is not None or version_of(request.scene.nvidia_version) is None:
        return not_applicable("this is no host with NVIDIA's driver")
    if not driver_of_operator(request.machine.read(TOOLKIT) or ""):
        return passed()
    if request.machine.exists(OPERATOR):
        return passed()
    evidence = f"{TOOLKIT}: root is {OPERATOR_ROOT}, which has no usr"
    return failed(of_cause(request, "toolkit-root-gone", evidence))


@check("shm-small", step="runtime", needs=(MOUNTS,))
def shared_memory(request: Request) -> ResultDoc:
    """Whether a container with GPUs has Docker's 64 MiB of shared memory."""
    devices = [device for device in request.report["devices"] if device["kind"] in ACCELERATORS]
    if request.scene.container is None or not devices:
        return not_applicable("this is no container with an accelerator")
    mounts = request.machine.read(MOUNTS)
    if mounts is None:
        return unknown(f"{MOUNTS} cannot be read")
    size = next((_size(line) for line in mounts.splitlines() if " /dev/shm " in line), None)
    if size is None or size > _SMALL:
        return passed()
    evidence = f"{MOUNTS}: /dev/shm has {size >> 20} MiB"
    return failed(of_cause(request, "shm-small", evidence, devices))


def _size(line: str) -> int | None:
    """Return the bytes of "shm /dev/shm tmpfs rw,…,size=65536k 0 0"; None without a size."""
    options = "".join(line.split()[3:4]).split(",")
    text = next((o.removeprefix("size=") for o in options if o.startswith("size=")), "")
    number = text.removesuffix("k")
    return int(number) << 10 if number != text and number.isdecimal() and len(number) < 13 else None


CHECKS = [specification, toolkit, shared_memory]
