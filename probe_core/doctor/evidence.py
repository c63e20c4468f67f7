"""What a bundle holds beyond a recording: of the files that readiness reads, the lines that matter.

Most lie in /etc or hold more than a stranger should see, so nothing is copied whole: names, marks
in place of contents, and single lines about drivers.
"""

from __future__ import annotations

import posixpath

from probe_core.doctor.evidence_lines import (
    ENVIRONMENT,
    FILES,
    LIBRARIES,
    MODULES,
    about_modules,
    environment,
    os_lines,
    parameters,
    people,
)
from probe_core.doctor.kernel_text import kernel_log
from probe_core.machine.access import UNKNOWN
from probe_core.model.kinds import ACCELERATORS
from probe_core.readiness.needs import required
from probe_core.readiness.scene import Scene, folder_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from probe_core.doctor.check import Request
    from probe_core.machine import Machine

__all__ = ["Evidence", "evidence"]

_MAX_NAMES = 512
_FIRMWARE = ("amdgpu", "xe", "intel/vpu", "arm/mali", "arm/mali/arch10.8", "i915")
_LOG_MARKS = ("NVRM: Xid", "GPU reset", "IO_PAGE_FAULT", "fault addr", "GuC", "wedged")
_MAX_LINES = 200
_LOST_WIDTH = 63
"""Lanes that a function shows which answers ff to every read: see `readiness.hardware`."""


class Evidence:
    """The files, links, variables and answers of access(2) of one machine that go into a bundle."""

    __slots__ = ("access", "environ", "files", "links", "machine")

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.files: dict[str, bytes] = {}
        self.links: dict[str, str] = {}
        self.environ: dict[str, str] = {}
        self.access: dict[str, str] = {}

    def put(self, path: str, content: bytes) -> None:
        """Put content where `path` really lies, with the links on the way to it."""
        folder = self._way(path.rpartition("/")[0])
        if folder:
            self.files.setdefault(f"{folder}/{path.rpartition('/')[2]}", content)

    def text(self, path: str, limit: int = 64 << 10) -> None:
        """Put the text of a small file that holds nobody's name."""
        text = self.machine.read(path, limit)
        if text is not None:
            self.put(path, f"{text}\n".encode())

    def mark(self, path: str, size: int = 0) -> None:
        """Put a file's name; with `size` its first bytes. A link keeps where it leads."""
        real = self.machine.realpath(path)
        if not real or not self.machine.exists(path):
            return
        folder = self._way(path.rpartition("/")[0])
        own = f"{folder}/{path.rpartition('/')[2]}"
        if real != own:
            self.links[own] = posixpath.relpath(real, folder or "/")
        try:
            head = self.machine.read_bytes(path, size) if size else b""
        except (OSError, ValueError):
            return
        self.files.setdefault(real, head)

    def _way(self, path: str) -> str:
        """Return where a folder really lies, and note each link on the way to it."""
        if path.startswith("/proc/self"):  # a link to the number of the process that looks
            return path
        folder = ""
        for name in path.split("/")[1:]:
            step = f"{folder}/{name}"
            real = self.machine.realpath(step)
            if not real:
                return ""
            if real != step:
                self.links[step] = posixpath.relpath(real, folder or "/")
            folder = real
        return folder


def evidence(request: Request) -> Evidence:
    """Return what the causes of this machine are told by."""
    result = Evidence(request.machine)
    scene = request.scene
    for path in FILES:
        result.text(path)
    result.put("/etc/os-release", os_lines(request.machine))
    result.put("/proc/cmdline", parameters(scene.modules.command_line))
    for path, content in people(scene.process).items():
        result.put(path, content)
    result.environ = environment(request.machine)
    _add_devices(result, request)
    _add_modules(result, scene)
    _add_secure_boot(result)
    _add_firmware(result, scene)
    _add_libraries(result, scene)
    _add_rocblas(result)
    _add_containers(result)
    _add_log(result, request)
    _add_mps(result)
    return result


def _add_devices(result: Evidence, request: Request) -> None:
    """Add how opening each device's nodes would end, and what of its link is odd."""
    machine, scene = request.machine, request.scene
    if machine.exists("/dev"):
        result.files.setdefault("/dev/null", b"")
    result.mark("/usr/bin/nvidia-modprobe")
    for device in request.report["devices"]:
        for path in required(device, scene) if device["kind"] in ACCELERATORS else ():
            if (state := scene.access(path)) != UNKNOWN:
                result.access[path] = state
        folder = folder_of(device)
        # Neither file of a device that may sleep is read: that would wake it.
        if folder is None or device["power_state"] not in ("active", None):
            continue
        for name in machine.listdir(folder):
            if name.startswith("resource") and name.endswith("_resize"):
                result.text(f"{folder}/{name}", 64)
        if machine.read_int(f"{folder}/current_link_width") == _LOST_WIDTH:
            try:
                result.put(f"{folder}/config", machine.read_bytes(f"{folder}/config", 64))
            except (OSError, ValueError):
                continue
    if scene.rules.path:
        result.text(scene.rules.path)
        text = machine.read(scene.rules.path, 64 << 10) or ""
        result.files["/sys/fs/cgroup/devices/devices.list"] = text.encode()
        result.files.setdefault("/proc/self/cgroup", b"9:devices:/\n")


def _add_modules(result: Evidence, scene: Scene) -> None:
    """Add which modules each kernel has, which lines forbid one, and what DKMS built."""
    machine = result.machine
    for folder in scene.modules.kernels:
        # An empty list stays a list: it says that depmod ran, and that nothing is there.
        for name in ("modules.dep", "modules.builtin"):
            listing = machine.read(f"{folder}/{name}")
            if listing is not None:
                result.put(f"{folder}/{name}", about_modules(listing))
        for module in MODULES:
            if (path := scene.modules.on_disk(module, folder)) is not None:
                result.mark(path)
    for folder in ("/etc/modprobe.d", "/run/modprobe.d", "/usr/lib/modprobe.d", "/lib/modprobe.d"):
        for name in machine.listdir(folder)[:_MAX_NAMES]:
            lines = _forbidding(machine.read(f"{folder}/{name}") or "")
            if name.endswith(".conf") and lines:
                result.put(f"{folder}/{name}", lines)
    for package in machine.listdir("/var/lib/dkms"):
        if package.partition("-")[0] in MODULES:
            for path in _below(machine, f"/var/lib/dkms/{package}", 2):
                result.put(f"{path}/mark", b"")


def _forbidding(text: str) -> bytes:
    lines = [line.split() for line in text.splitlines()]
    chosen = [
        " ".join(fields)
        for fields in lines
        if len(fields) > 1
        and fields[0] in ("blacklist", "install")
        and fields[1].replace("-", "_") in MODULES
    ]
    return "".join(f"{line}\n" for line in chosen).encode()


def _below(machine: Machine, folder: str, depth: int) -> Iterator[str]:
    for name in machine.listdir(folder)[:64]:
        path = f"{folder}/{name}"
        if depth > 1:
            yield from _below(machine, path, depth - 1)
        else:
            yield path


def _add_secure_boot(result: Evidence) -> None:
    folder = "/sys/firmware/efi/efivars"
    for name in result.machine.listdir(folder):
        if name.startswith("SecureBoot-"):
            try:
                result.put(f"{folder}/{name}", result.machine.read_bytes(f"{folder}/{name}", 16))
            except (OSError, ValueError):
                continue


def _add_firmware(result: Evidence, scene: Scene) -> None:
    """Add one name of each folder: whether it is there and has something is what counts."""
    from probe_core.readiness.nvidia_driver import version_of

    machine, root = result.machine, "/lib/firmware"
    folders = ["", *_FIRMWARE]
    if version := version_of(scene.nvidia_version):
        folders.append(f"nvidia/{version}")
    for folder in folders:
        place = f"{root}/{folder}".rstrip("/")
        names = [name for name in machine.listdir(place) if not machine.listdir(f"{place}/{name}")]
        for name in names[:1]:
            result.put(f"{place}/{name}", b"")


def _add_libraries(result: Evidence, scene: Scene) -> None:
    machine, libraries = result.machine, scene.libraries
    _add_own_copies(result, scene)
    for name in LIBRARIES:
        for path in libraries.find(name):
            if _is_public(path):
                result.mark(path, 20)
        first = libraries.find_any(name)
        if first is not None and _is_public(first):
            result.mark(first, 20)
    # Any other library: without one a recording says nothing of those that are absent.
    for folder in libraries.folders:
        other = next((name for name in machine.listdir(folder) if ".so" in name), None)
        if other is not None and _is_public(folder):
            result.put(f"{folder}/{other}", b"")
            break
    result.text("/etc/ld.so.conf")
    try:
        cache = machine.read_bytes("/etc/ld.so.cache")
    except (OSError, ValueError):
        return
    known = [name for name in LIBRARIES if name.encode() in cache]
    result.put("/etc/ld.so.cache", "\0".join(known).encode())


def _add_own_copies(result: Evidence, scene: Scene) -> None:
    """Add the libraries that a variable leads to, under folders with names of our own."""
    machine = result.machine
    folders: list[str] = []
    for folder in machine.environ.get("LD_LIBRARY_PATH", "").split(":")[:32]:
        names = [name for name in LIBRARIES if machine.exists(f"{folder}/{name}")]
        if not folder.startswith("/") or not names:
            continue
        own = folder
        if not _is_public(folder):
            own = f"/opt/folder{len(folders)}" + ("/stubs" if "/stubs" in f"{folder}/" else "/lib")
            for name in names:
                result.files[f"{own}/{name}"] = _head(machine, f"{folder}/{name}")
        folders.append(own)
    if folders:
        result.environ["LD_LIBRARY_PATH"] = ":".join(folders)


def _head(machine: Machine, path: str) -> bytes:
    """Return the first bytes of a library: its format, and the size of its words."""
    try:
        return machine.read_bytes(path, 20)
    except (OSError, ValueError):
        return b""


def _is_public(path: str) -> bool:
    """Return whether a path names nobody: a user's own folders do."""
    return path.split("/")[1] not in ("home", "root", "Users", "tmp")


def _add_rocblas(result: Evidence) -> None:
    machine = result.machine
    for name in machine.listdir("/opt"):
        folder = f"/opt/{name}/lib/rocblas/library"
        targets = [entry for entry in machine.listdir(folder) if "gfx" in entry]
        for entry in targets[:_MAX_NAMES] if name.startswith("rocm") else ():
            result.put(f"{folder}/{entry}", b"")


def _add_containers(result: Evidence) -> None:
    """Add the driver's version that a CDI specification names, and the size of /dev/shm."""
    machine = result.machine
    for folder in ("/etc/cdi", "/var/run/cdi", "/run/cdi"):
        for name in machine.listdir(folder)[:64]:
            text = machine.read(f"{folder}/{name}") or ""
            if "nvidia.com/gpu" in text and name.endswith((".yaml", ".json")):
                fields = text.partition("libcuda.so.")[2][:20].split()[:1]
                version = (fields or [""])[0].strip("\"',")
                result.put(f"{folder}/{name}", f"nvidia.com/gpu libcuda.so.{version}\n".encode())
    mounts = (machine.read("/proc/self/mounts") or "").splitlines()
    lines = [line for line in mounts if " /dev/shm " in line]
    if mounts:
        result.put("/proc/self/mounts", "".join(f"{line}\n" for line in lines).encode())


def _add_log(result: Evidence, request: Request) -> None:
    log = kernel_log(request)
    if log.text is not None:
        lines: Iterable[str] = log.text.splitlines()
        lines = [line for line in lines if any(mark in line for mark in _LOG_MARKS)]
        text = "Linux version (of the log the lines about GPUs alone)\n"
        text += "".join(f"{line[:400]}\n" for line in lines[-_MAX_LINES:])
        result.put("/var/log/dmesg", text.encode("utf-8", "replace"))


def _add_mps(result: Evidence) -> None:
    """Add whether the folder of the MPS daemon has its pipe, under a name of our own."""
    machine, variable = result.machine, "CUDA_MPS_PIPE_DIRECTORY"
    folder = machine.environ.get(variable)
    if not folder or not folder.startswith("/"):
        return
    own = ENVIRONMENT[variable]
    if machine.exists("/proc/self"):
        result.files["/proc/self/comm"] = b"python\n"
    for name in machine.listdir(folder)[:64]:
        number = (machine.read(f"{folder}/{name}", 32) or "") if name.endswith(".pid") else ""
        result.files[f"{own}/{name}"] = number.encode()
        if number.isdecimal() and machine.exists(f"/proc/{number}"):
            result.files[f"/proc/{number}/stat"] = b""
    result.environ[variable] = own
