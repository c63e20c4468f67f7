"""What a recording keeps of the kernel's modules and firmware: names, and lines about drivers.

`readiness.modules` and its steps judge by them. Of each file the lines are kept that concern a
driver of a device; the others tell of disks, networks and people.
"""

from __future__ import annotations

import posixpath

from probe_core.machine.engines import (
    OPERATOR_ROOT,
    TOOLKIT,
    driver_of_operator,
    mode_of_toolkit,
)
from probe_core.readiness.fixes import OPERATOR
from probe_core.readiness.library import CUDA, NIXOS_VERSION, NVML, STUBS
from probe_core.readiness.modules import (
    CONFIGURATION,
    DKMS,
    ENROLLED,
    SECURE_BOOT,
    driver_of,
    forbids,
    module_of,
)
from probe_core.readiness.rocm import KFD_NODES, RUNTIMES
from probe_core.readiness.runtime import (
    HAILO,
    HAILORT,
    LEGACY_ICD,
    NPU_LIBRARIES,
    XRT,
    ZE,
    ZE_LEGACY,
)
from probe_core.readiness.switched import modes, removals
from probe_core.readiness.unbound import FIRMWARE, FIRMWARE_PATH, MODULES, OF_ARCHITECTURE, UPDATES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from probe_core.machine import Machine
    from probe_core.readiness import Scene


NAMES = frozenset(
    {
        *MODULES.values(),
        *("i915", "nouveau", "nova_core", "nvidia_drm", "nvidia_modeset", "nvidia_uvm"),
        *("nvidia_vgpu_vfio", "nvgpu", "panfrost", "panthor", "radeon", "rknpu", "vfio_pci", "xe"),
    }
)
"""The modules that are recorded: drivers of accelerators, and what takes devices from them."""

# Parameters of the kernel that keep a driver from a device, beside the modules' own ones.
_PARAMETERS = frozenset(
    "module_blacklist modprobe.blacklist rd.driver.blacklist nomodeset pci iommu intel_iommu"
    " amd_iommu hugepages default_hugepagesz module.sig_enforce".split()
)
_LOCKDOWN = "/sys/kernel/security/lockdown"
_KEY = b"enrolled"
"""Stands for a certificate, which may name a person or a machine, and for the list with it."""

_TOPOLOGY = "/sys/firmware/acpi/tables/PPTT"
"""Shows that the firmware describes the processors; root alone may read it, and nobody does."""

_MAX_FIRMWARE = 8
"""Names kept of one folder: the question is whether it has any, and any of an architecture."""

_AMDGPU = f"/lib/firmware/{FIRMWARE['amdgpu']}"


def kernel_files(machine: Machine, scene: Scene) -> dict[str, bytes]:
    """Return path to content. A file of which the name alone matters is empty."""
    return {
        **dict.fromkeys(_loaded(machine), b""),
        **dict(_installed(machine, scene)),
        **dict.fromkeys(_built_by_dkms(machine), b""),
        **dict.fromkeys(_images(machine, scene), b""),
        **dict(_configuration(machine)),
        **dict.fromkeys(_firmware(machine), b""),
        **dict(_boot(machine, scene)),
        **dict(_switched(machine)),
        **dict(_containers(machine)),
    }


def refused_files(machine: Machine, files: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield what stands for files of which the content says nothing, or cannot be read.

    A device cgroup refuses to read the KFD nodes of other jobs' GPUs: that they are there counts.
    A link of 63 lanes is that of a dead device, unless its configuration space answers.
    """
    for name in machine.listdir(KFD_NODES):
        path = f"{KFD_NODES}/{name}/properties"
        if machine.read(path, 8192) is None:
            yield path, b""
    for path, content in files.items():
        folder, _, name = path.rpartition("/")
        if name == "current_link_width" and content.strip() == b"63" and _answers(machine, folder):
            yield f"{folder}/config", b"answers\n"


def _answers(machine: Machine, folder: str) -> bool:
    try:
        return bool(machine.read_bytes(f"{folder}/config", 64).strip(b"\xff"))
    except (OSError, ValueError):
        return False


def _loaded(machine: Machine) -> Iterator[str]:
    for name in NAMES:
        if machine.exists(f"/sys/module/{name}"):
            yield f"/sys/module/{name}/refcnt"


def _installed(machine: Machine, scene: Scene) -> Iterator[tuple[str, bytes]]:
    """Yield the lists of modules of every kernel that is installed, and files they do not have."""
    for folder in scene.modules.kernels:
        for path in filter(None, (scene.modules.on_disk(name, folder) for name in NAMES)):
            yield path, b""
        for name in ("modules.dep", "modules.builtin"):
            text = machine.read(f"{folder}/{name}")
            if text is not None and scene.modules.is_whole(text):
                lines = [
                    line for line in text.splitlines() if driver_of(line.partition(":")[0]) in NAMES
                ]
                yield f"{folder}/{name}", joined(lines)


def _built_by_dkms(machine: Machine) -> Iterator[str]:
    for package in machine.listdir(DKMS):
        if package.partition("-")[0] in NAMES:
            for version in machine.listdir(f"{DKMS}/{package}"):
                for kernel in machine.listdir(f"{DKMS}/{package}/{version}"):
                    yield f"{DKMS}/{package}/{version}/{kernel}/dkms.conf"


def _images(machine: Machine, scene: Scene) -> Iterator[str]:
    """Yield the images of kernels: which will boot follows from their names, by the rule."""
    names = [name for name in machine.listdir("/boot") if name.startswith("vmlinuz-")]
    yield from (f"/boot/{name}" for name in names[:_MAX_IMAGES])
    beside = (f"{folder}/vmlinuz" for folder in scene.modules.kernels)
    yield from filter(machine.exists, beside)


_MAX_IMAGES = 64


def _configuration(machine: Machine) -> Iterator[tuple[str, bytes]]:
    for folder in CONFIGURATION:
        for name in machine.listdir(folder):
            if name.endswith(".conf"):
                text = (machine.read(f"{folder}/{name}") or "").replace("\\\n", "")
                if lines := [line for line in text.splitlines() if _configures(line.split())]:
                    yield f"{folder}/{name}", joined(lines)


def _configures(fields: list[str]) -> bool:
    """Return whether a line of modprobe.d forbids or sets a driver; commands may name anything."""
    return module_of(fields) in NAMES and (fields[0] == "options" or forbids(fields))


def _firmware(machine: Machine) -> Iterator[str]:
    folders = [f"/lib/firmware/{name}" for name in FIRMWARE.values()]
    folders += [f"/lib/firmware/nvidia/{name}" for name in machine.listdir("/lib/firmware/nvidia")]
    folders += [f"/lib/firmware/arm/mali/{n}" for n in machine.listdir("/lib/firmware/arm/mali")]
    for folder in folders:
        names = machine.listdir(folder)
        stems = OF_ARCHITECTURE.values() if folder == _AMDGPU else ()
        own = (next((name for name in names if name.startswith(stem)), "") for stem in stems)
        for name in dict.fromkeys([*names[:_MAX_FIRMWARE], *filter(None, own)]):
            # What is a folder itself is one of `folders`, or has nothing that is asked for.
            if not machine.listdir(f"{folder}/{name}"):
                yield f"{folder}/{name}"
    for name in (*FIRMWARE.values(), "nvidia"):
        if names := machine.listdir(f"{UPDATES}/{name}"):
            yield f"{UPDATES}/{name}/{names[0]}"
    # That there is firmware at all: a container has none, and needs none.
    if names := machine.listdir("/lib/firmware"):
        plain = [name for name in names if not machine.listdir(f"/lib/firmware/{name}")]
        yield f"/lib/firmware/{(plain or ['regulatory.db'])[0]}"


def _boot(machine: Machine, scene: Scene) -> Iterator[tuple[str, bytes]]:
    kept = [text for text in scene.modules.command_line if _is_kept(text.partition("=")[0])]
    if machine.exists("/proc/cmdline"):
        yield "/proc/cmdline", f"{' '.join(kept)}\n".encode()
    if machine.read(FIRMWARE_PATH, 4096):
        yield FIRMWARE_PATH, b"/elsewhere\n"
    if machine.exists(SECURE_BOOT):
        yield SECURE_BOOT, b"\x06\0\0\0" + (b"\x01" if scene.modules.secure_boot else b"\0")
    for path in (ENROLLED, *scene.modules.enrolled) if scene.modules.enrolled else ():
        yield path, _KEY
    if machine.exists(_TOPOLOGY):
        yield _TOPOLOGY, b""
    if text := machine.read(_LOCKDOWN, 64):
        yield _LOCKDOWN, f"{text}\n".encode()


def _switched(machine: Machine) -> Iterator[tuple[str, bytes]]:
    """Yield what keeps a discrete GPU off the bus: modes of tools, and rules of udev."""
    for path, mode in modes(machine):
        yield path, f"{mode}\n".encode()
    lines: dict[str, list[str]] = {}
    for path, line in removals(machine):
        lines.setdefault(path, []).append(line)
    yield from ((path, joined(kept)) for path, kept in lines.items())


def _containers(machine: Machine) -> Iterator[tuple[str, bytes]]:
    """Yield how containers get NVIDIA's GPUs; the other lines name folders of the host."""
    text = machine.read(TOOLKIT) or ""
    kept = ""
    if driver_of_operator(text):
        kept += f'[nvidia-container-cli]\nroot = "{OPERATOR_ROOT}"\n'
    if mode := mode_of_toolkit(text):
        kept += f'[nvidia-container-runtime]\nmode = "{mode}"\n'
    if kept:
        yield TOOLKIT, kept.encode()


def _is_kept(key: str) -> bool:
    return key in _PARAMETERS or key.partition(".")[0].replace("-", "_") in NAMES


def joined(lines: list[str]) -> bytes:
    """Return lines as a file of an archive holds them."""
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")


# What a recording keeps of drivers' libraries: where the loader finds them, in which version.
#
# `readiness.libraries` judges by it. Of each library the name, the version that it leads to and
# the head that tells its word size are kept; folders of a person's own become ones of all machines.

_LOADED = (NVML, CUDA, ZE, ZE_LEGACY)
_CACHE, _CONFIGURATION = "/etc/ld.so.cache", "/etc/ld.so.conf"
_COMPAT = "/usr/local/cuda/compat/libcuda.so.1"
_HEAD = 16
"""Bytes of an ELF file that name its class; all of them are ASCII, as a recording needs."""

_MAX_KERNEL_FILES = 64
"""rocBLAS files kept, one for each ISA."""

_WSL_LIBRARIES, _WSL_DRIVERS = "/usr/lib/wsl/lib", "/usr/lib/wsl/drivers"
_MAX_WINDOWS_FILES = 256

_PUBLIC = ("/usr/", "/lib/", "/lib64/", "/opt/", "/run/opengl-driver/", "/nix/store/")
_PRIVATE = "/opt/venv"
"""Stands for a folder of a person's own. `Libraries` looks into it on every machine."""

_ENVIRONMENTS = ("VIRTUAL_ENV", "CONDA_PREFIX")


class Loader:
    """The libraries of one machine. `files`, `links` and `environ` are a recording's."""

    def __init__(self, machine: Machine, scene: Scene) -> None:
        self.files: dict[str, bytes] = {}
        self.links: dict[str, str] = {}
        self.environ: dict[str, str] = {}
        self._machine = machine
        self._libraries = scene.libraries
        # Off Linux nothing is judged by files.
        if machine.os == "linux":
            self._take()

    def _take(self) -> None:
        places = [path for name in _LOADED for path in self._libraries.find(name)]
        places += [path for names in NPU_LIBRARIES.values() for path in self._of_npu(names)]
        runtime = self._libraries.find_any(*RUNTIMES)
        for path in [*places, *([runtime] if runtime else []), *self._of_hailo()]:
            self._library(path)
        if runtime:
            self._kernels(runtime)
        self._search_path(places)
        if _COMPAT not in self.links and self._machine.exists(_COMPAT):
            self.files.setdefault(_COMPAT, b"")
        self._configured()

    def _of_npu(self, names: tuple[str, ...]) -> list[str]:
        """Return where the user driver of an NPU is."""
        path = self._libraries.find_any(*names) or f"{XRT}/{names[0]}"
        return [path] if self._libraries.exists(path) else []

    def _library(self, path: str) -> None:
        """Keep one library, and the name with its version where it is a link to that."""
        folder, _, name = path.rpartition("/")
        place, _, real = self._machine.realpath(path).rpartition("/")
        # That it is a stub of the toolkit only its folder says.
        place = public(place) if f"{place}/".endswith(STUBS) else public(folder)
        folder = public(folder)
        try:
            head = self._machine.read_bytes(path, _HEAD)
        except (OSError, ValueError):
            head = b""
        if real and (place, real) != (folder, name):
            self.links[f"{folder}/{name}"] = posixpath.relpath(f"{place}/{real}", folder)
        self.files[f"{place}/{real or name}"] = head if head.isascii() else b""

    def _kernels(self, runtime: str) -> None:
        folder = f"{runtime.rpartition('/')[0]}/rocblas/library"
        by_target: dict[str, str] = {}
        for name in self._libraries.names(folder):
            _, gfx, end = name.partition("gfx")
            if gfx:
                by_target.setdefault(end.partition(".")[0], name)
        for name in list(by_target.values())[:_MAX_KERNEL_FILES]:
            self.files[f"{public(folder)}/{name}"] = b""

    def _search_path(self, places: list[str]) -> None:
        """Keep of `LD_LIBRARY_PATH` the folders in which one of the libraries lies."""
        used = {path.rpartition("/")[0] for path in places}
        folders = self._machine.environ.get("LD_LIBRARY_PATH", "").split(":")
        kept = [public(folder.rstrip("/")) for folder in folders if folder.rstrip("/") in used]
        if kept:
            self.environ["LD_LIBRARY_PATH"] = ":".join(kept)

    def _of_hailo(self) -> Iterator[str]:
        """Yield HailoRT's library by the names that have its version, where its driver is."""
        libraries = self._libraries
        for folder in libraries.folders if self._machine.exists(HAILO) else ():
            names = libraries.names(folder)
            yield from (f"{folder}/{name}" for name in names if name.startswith(f"{HAILORT}."))

    def _configured(self) -> None:
        """Keep the folders of the loader's configuration, and which of our names its cache has."""
        machine, libraries = self._machine, self._libraries
        if machine.exists(_CONFIGURATION):
            lines = [f"{folder}\n" for folder in libraries.configured if public(folder) == folder]
            self.files[_CONFIGURATION] = "".join(lines).encode()
        try:
            cache = machine.read_bytes(_CACHE)
        except (OSError, ValueError):
            cache = b""
        of_npus = [name for group in NPU_LIBRARIES.values() for name in group]
        known = (*_LOADED, *RUNTIMES, *of_npus)
        names = [name for name in known if name.encode() in cache]
        if cache:
            self.files[_CACHE] = "".join(f"{name}\n" for name in names).encode()
        for path in ("/etc/NIXOS", NIXOS_VERSION, OPERATOR, LEGACY_ICD):
            if machine.exists(path):
                self.files[path] = b""
        self._of_windows()
        if machine.exists("/etc/NIXOS") and machine.exists("/run/opengl-driver"):
            self.files.setdefault("/run/opengl-driver/lib/libc.so.6", b"")
        # That the loader's folders were recorded: without any library, absence says nothing.
        if libraries.are_recorded:
            self.files.setdefault("/usr/lib/libc.so.6", b"")

    def _of_windows(self) -> None:
        """Keep which libraries and drivers of NVIDIA Windows gives to WSL: their names alone."""
        for folder, stems in ((_WSL_LIBRARIES, ("lib", "nv")), (_WSL_DRIVERS, ("nv",))):
            for name in self._machine.listdir(folder)[:_MAX_WINDOWS_FILES]:
                path = f"{folder}/{name}"
                if name.startswith(stems) and path not in self.links:
                    self.files.setdefault(path, b"")


def public(folder: str) -> str:
    """Return a folder as a recording writes it: without the name of a person or of a project."""
    if f"{folder}/".startswith(_PUBLIC):
        return folder
    _, python, below = folder.partition("/lib/python3")
    return f"{_PRIVATE}{python}{below}" if python else f"{_PRIVATE}/lib"
