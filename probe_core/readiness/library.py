"""Step `library`: whether the library through which the driver is used is there, and fits it.

Only NVIDIA's driver has one; what AMD's and Intel's runtimes need is judged by the step `runtime`.
"""

from __future__ import annotations

import sys

from probe_core.machine import decimal
from probe_core.readiness.chain import broken, not_applicable, ok, unknown
from probe_core.readiness.scene import lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from probe_core.machine import Machine
    from probe_core.model.document import DeviceDoc, StepDoc
    from probe_core.readiness.scene import Scene


_STEP = "library"
NVML, CUDA = "libnvidia-ml.so.1", "libcuda.so.1"

NIXOS_VERSION = "/run/current-system/nixos-version"
"""Shows that /run is the system's own, not a container's."""

_NIXOS_DRIVERS = "/run/opengl-driver"

_ELF, _CLASS_32, _CLASS_64 = b"\x7fELF", 1, 2


def library(device: DeviceDoc, scene: Scene) -> StepDoc:
    """Return the step."""
    if not scene.linux:
        return unknown(_STEP, f"libraries of {scene.machine.os} are not looked at")
    if device["vendor"] != "nvidia" or device["kind"] != "gpu":
        return not_applicable(_STEP, "no library belongs to its driver")
    if scene.driver(device) != "nvidia" or "bus" not in device["seen_by"]:
        return unknown(_STEP, "which library its driver brings is not known")
    # One library serves all GPUs: it is looked at once.
    if scene.nvml is None:
        scene.nvml = _judged(scene)
    return {**scene.nvml}


def _judged(scene: Scene) -> StepDoc:
    paths = scene.libraries.find(NVML)
    if not paths:
        return _absent(scene)
    misfit = _misfit(paths, scene)
    if misfit is None:
        return ok(_STEP, f"{paths[0]}: there")
    # Of an image that brings a library of its own, as of a file that was replaced: programs that
    # compute do not use this one. Seen on an H200 (driver 580.159.04), CUDA worked all the same.
    if cuda := _fitting_cuda(scene):
        return broken(_STEP, "nvml-broken", f"{misfit['evidence']}; {cuda} fits the driver")
    return misfit


def _absent(scene: Scene) -> StepDoc:
    evidence = f"{NVML} is in no folder of the loader"
    if _is_nixos_without_drivers(scene):
        return broken(_STEP, "library-missing", f"{evidence}; {_NIXOS_DRIVERS} is absent")
    if not scene.libraries.surely_absent(NVML):
        return unknown(_STEP, f"{evidence}; other folders may have it")
    if scene.libraries.find(CUDA):
        return broken(_STEP, "nvml-missing", f"{evidence}; {scene.libraries.find(CUDA)[0]}: there")
    return broken(_STEP, "library-missing", evidence)


def _fitting_cuda(scene: Scene) -> str | None:
    """Return the path of CUDA's library if it can surely be loaded, and is of the driver's version.

    None as well where its name has no version.
    """
    path = next(iter(scene.libraries.find(CUDA)), None)
    if path is None or scene.libraries.stub(path) or unloadable(path, scene):
        return None
    own = library_version(scene.libraries.real(path))
    return path if own is not None and own == version_of(scene.nvidia_version) else None


def _is_nixos_without_drivers(scene: Scene) -> bool:
    """Return whether this is NixOS without the one folder that leads to drivers' libraries."""
    exists = scene.machine.exists
    return exists("/etc/NIXOS") and exists(NIXOS_VERSION) and not exists(_NIXOS_DRIVERS)


def _misfit(paths: list[str], scene: Scene) -> StepDoc | None:
    """Judge the library that the loader takes: the first of the `paths`."""
    libraries, path = scene.libraries, paths[0]
    if stub := libraries.stub(path):
        return broken(_STEP, "library-broken", f"{stub} is a stub of the CUDA toolkit")
    if reason := unloadable(path, scene):
        return broken(_STEP, "library-broken", reason)
    version = version_of(scene.nvidia_version)
    names = [libraries.real(path).rpartition(".so.")[2] for path in paths]
    # Without a version in its name ("1") a file says nothing of it.
    versions = [name for name in names if "." in name]
    if version and versions and version not in versions:
        text = f"/proc/driver/nvidia/version: {version}; {path} leads to {versions[0]}"
        return broken(_STEP, "version-mismatch", text)
    return None


def unloadable(path: str, scene: Scene) -> str | None:
    """Return why the loader refuses a file; None for what a recording replaced by a mark."""
    libraries = scene.libraries
    head = libraries.head(path)
    if head is None:
        return None
    if libraries.is_foreign(head):
        if head[4] == _CLASS_32:
            return f"{path} is a library for another word size (ELF class 1)"
        return f"{path} is damaged: its head is no ELF library's"
    # A recording may hold a file's name without its content: only where it has that of others.
    siblings = (*libraries.find(CUDA), *libraries.find(NVML))
    if not head and (scene.machine.live or any(libraries.head(other) for other in siblings)):
        return f"{path} is empty"
    return None


# Versions of NVIDIA's driver: its kernel module and its libraries have the same.


def version_of(text: str) -> str | None:
    """Return "580.95.05" of /proc/driver/nvidia/version; None when it has no version."""
    return next(filter(_is_version, text.partition("\n")[0].split()), None)


def library_version(real: str) -> str | None:
    """Return "580.65.06" of a resolved path whose name ends so; None of a name without version."""
    name = real.rpartition(".so.")[2]
    return name if _is_version(name) else None


def _is_version(text: str) -> bool:
    parts = text.split(".")
    return len(parts) in (2, 3) and all(decimal(part) is not None for part in parts)


def major_of(version: str | None) -> int | None:
    """Return the branch's number: 580 of "580.95.05"."""
    return decimal((version or "").partition(".")[0])


# Where a program's loader finds libraries, told by folders and files alone.
#
# Nothing is loaded and ldconfig is not started: a vendor's library may hang, and find_library of
# ctypes takes 12 to 20 ms. What programs bring along themselves (wheels, rpath) is looked for
# where
# it usually lies; a search without folders to search finds nothing, and says so.

_TRIPLETS = {
    "x86_64": "x86_64-linux-gnu",
    "aarch64": "aarch64-linux-gnu",
    "ppc64le": "powerpc64le-linux-gnu",
    "riscv64": "riscv64-linux-gnu",
}

# Where drivers put libraries outside the loader's configuration, each found through a variable or
# an rpath: WSL, NixOS, GKE and other node installers, JetPack.
_OF_DRIVERS = (
    "/usr/lib/wsl/lib",
    "/run/opengl-driver/lib",
    "/usr/local/nvidia/lib64",
    "/usr/local/nvidia/lib",
    "/usr/lib/aarch64-linux-gnu/tegra",
    "/usr/lib/aarch64-linux-gnu/nvidia",
)
_OF_LOADER = (
    "/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib", "/usr/local/lib64",
)  # fmt: skip
"""What the loader knows by itself, beside the folders of Debian's triplet."""
_CACHE = "/etc/ld.so.cache"
_CONFIGURATION = "/etc/ld.so.conf"
STUBS = "/stubs/"
_MAX_FILES = 64
_MAX_FOLDERS = 128
_ENVIRONMENTS = ("VIRTUAL_ENV", "CONDA_PREFIX")

# Below a site-packages folder: PyTorch's own wheels, and AMD's wheels of ROCm ("TheRock").
_IN_WHEELS = ("torch/lib", "_rocm_sdk_core/lib", "_rocm_sdk_libraries/lib")


class Libraries:
    """The libraries of a Linux machine.

    `allows` says which paths may be looked at: homes, environments and ROCm lie on NFS, and a look
    at a dead server does not return. What was not looked at is not known to be absent.
    """

    def __init__(self, machine: Machine, allows: Callable[[str], bool] | None = None) -> None:
        self._machine = machine
        self._allows = allows
        triplet = _TRIPLETS.get(machine.arch)
        multiarch = (f"/lib/{triplet}", f"/usr/lib/{triplet}", f"/usr/local/lib/{triplet}")
        self._own = (*multiarch, *_OF_LOADER) if triplet else _OF_LOADER
        self._refused = False
        self._paths: dict[str, list[str]] = {}
        self._names: dict[str, list[str]] = {}
        self._real: dict[str, str] = {}
        self._absent: dict[tuple[str, ...], bool] = {}

    def find(self, name: str) -> list[str]:
        """Return the paths of a library in the loader's order; `name` is a soname.

        The loader passes over one for another word size (elf/dl-load.c, open_verify): desktops have
        the driver's 32-bit libraries for games, in a folder that Debian configures before its own.
        """
        if name not in self._paths:
            paths = [f"{folder}/{name}" for folder in self.folders]
            found = [path for path in paths if self.exists(path)]
            if len(found) > 1:
                found = [path for path in found if not self.is_foreign(self.head(path))] or found
            self._paths[name] = found
        return self._paths[name]

    def is_foreign(self, head: bytes | None) -> bool:
        """Return whether a head surely is a library's for another word size than programs have."""
        if not head:
            return False
        is_64_bit = self._machine.arch in ("x86_64", "aarch64", "ppc64le", "riscv64")
        return is_64_bit and head[:4] == _ELF and len(head) > 4 and head[4] != _CLASS_64

    def head(self, path: str) -> bytes | None:
        """Return the first bytes of a file; None of one that cannot be read."""
        try:
            return self._machine.read_bytes(path, 20)
        except (OSError, ValueError):
            return None

    def stub(self, path: str) -> str:
        """Return the words for the toolkit's stub that a library is; "" where it is none.

        Images link them under the soname, to have programs linked that run elsewhere.
        """
        if STUBS in path:
            return path
        real = self.real(path)
        return f"{path} leads to {real}, which" if STUBS in real else ""

    def real(self, path: str) -> str:
        """Return a library's path with all links resolved, which is done once for all devices."""
        if path not in self._real:
            self._real[path] = self._machine.realpath(path)
        return self._real[path]

    def installed(self, name: str) -> bool:
        """Return whether a library lies where the loader looks without `LD_LIBRARY_PATH`.

        That variable leads to a copy: it says nothing of where the rest of its package is.
        """
        variable = self._machine.environ.get("LD_LIBRARY_PATH", "").split(":")
        folders = {path.rstrip("/") for path in variable} - {*self.configured, *self._own}
        return any(path.rpartition("/")[0] not in folders for path in self.find(name))

    def find_any(self, *names: str) -> str | None:
        """Return the path of the first of several libraries, wheels and /opt included."""
        key = " ".join(names)
        if key not in self._paths:
            paths = (f"{folder}/{name}" for folder in self._everywhere() for name in names)
            path = next((path for path in paths if self.exists(path)), None)
            self._paths[key] = [path] if path else []
        return next(iter(self._paths[key]), None)

    def _everywhere(self) -> Iterator[str]:
        """Yield the folders in which a library may lie; where others are is looked up last."""
        yield from self.folders
        yield from self._rocm
        yield from self._wheels

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, which is listed once: rocBLAS has hundreds of files.

        There are none of a folder that may not be looked at.
        """
        if folder not in self._names:
            self._names[folder] = self._machine.listdir(folder) if self._may_look(folder) else []
        return self._names[folder]

    def exists(self, path: str) -> bool:
        """Return whether a file is there; False where it may not be looked at."""
        return self._may_look(path) and self._machine.exists(path)

    def _may_look(self, path: str) -> bool:
        allowed = self._allows is None or self._allows(path)
        self._refused = self._refused or not allowed
        return allowed

    def surely_absent(self, *names: str) -> bool:
        """Return whether a library that was not found is not there.

        A recording without libraries tells nothing, nor does NixOS, where rpaths lead to them. A
        name in the loader's cache lies in a folder that was not looked at.
        """
        if names not in self._absent:  # each GPU asks, and the cache is searched from end to end
            is_known = not self._machine.exists("/etc/NIXOS") and self.are_recorded
            self._absent[names] = is_known and not any(n.encode() in self._cache for n in names)
        return self._absent[names] and not self._refused

    @lazy
    def _cache(self) -> bytes:
        """The loader's cache, which is read once for all devices; empty without one."""
        try:
            return self._machine.read_bytes(_CACHE)
        except (OSError, ValueError):
            return b""

    @lazy
    def are_recorded(self) -> bool:
        """Whether the loader's folders have libraries at all."""
        return any(".so" in name for folder in self.folders for name in self.names(folder))

    @lazy
    def folders(self) -> list[str]:
        """The folders that the loader searches: the variable's, the configured, its own."""
        variable = self._machine.environ.get("LD_LIBRARY_PATH", "").split(":")
        listed = [*variable, *self.configured, *self._own, *_OF_DRIVERS]
        folders = dict.fromkeys(path.rstrip("/") for path in listed if path.startswith("/"))
        return list(folders)[:_MAX_FOLDERS]

    @lazy
    def configured(self) -> list[str]:
        """The folders of ld.so.conf and of the files that it includes (ldconfig(8))."""
        return list(self._in_configuration(_CONFIGURATION, deep=True))

    def _in_configuration(self, path: str, *, deep: bool) -> Iterator[str]:
        for line in (self._machine.read(path, 16 << 10) or "").splitlines():
            fields = line.partition("#")[0].split()
            if len(fields) == 2 and fields[0] == "include" and deep:
                for file in self._included(fields[1]):
                    yield from self._in_configuration(file, deep=False)
            elif fields and fields[0].startswith("/"):
                yield fields[0]

    def _included(self, pattern: str) -> list[str]:
        """Return the files of a pattern such as /etc/ld.so.conf.d/*.conf."""
        folder, _, names = pattern.rpartition("/")
        folder = folder if folder.startswith("/") else f"/etc/{folder}".rstrip("/")
        start, star, end = names.partition("*")
        if not star:
            return [f"{folder}/{names}"]
        listed = self.names(folder)[:_MAX_FILES]
        return [f"{folder}/{n}" for n in listed if n.startswith(start) and n.endswith(end)]

    @lazy
    def _rocm(self) -> list[str]:
        """The library folders below /opt/rocm and /opt/rocm-7.0.0."""
        names = self.names("/opt")
        return [f"/opt/{name}/{lib}" for name in names if name.startswith("rocm") for lib in _LIBS]

    @lazy
    def _wheels(self) -> list[str]:
        """The folders of libraries that Python packages bring."""
        return [f"{site}/{below}" for site in self._sites() for below in _IN_WHEELS]

    def _sites(self) -> list[str]:
        """Return the site-packages of this Python, of the active environment and of the system."""
        sites = [path for path in sys.path if path.endswith("-packages")]
        own = sites if self._machine.live else []
        prefixes = [self._machine.environ.get(name, "") for name in _ENVIRONMENTS]
        for prefix in (*filter(None, prefixes), "/usr", "/usr/local", "/opt/venv", "/opt/conda"):
            for name in self.names(f"{prefix}/lib"):
                if name.startswith("python3"):
                    own += [f"{prefix}/lib/{name}/{kind}-packages" for kind in ("site", "dist")]
        return own


_LIBS = ("lib", "lib64")
