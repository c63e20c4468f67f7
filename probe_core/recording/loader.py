"""What a recording keeps of drivers' libraries: where the loader finds them, in which version.

`readiness.libraries` judges by it. Of each library the name, the version that it leads to and the
head that tells its word size are kept; folders of a person's own become ones of all machines.
"""

from __future__ import annotations

from probe_core.readiness.library import CUDA, NIXOS_VERSION, NVML
from probe_core.readiness.rocm import RUNTIMES
from probe_core.readiness.runtime import ZE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.machine import Machine
    from probe_core.readiness import Scene

__all__ = ["Loader"]

_CACHE, _CONFIGURATION = "/etc/ld.so.cache", "/etc/ld.so.conf"
_COMPAT = "/usr/local/cuda/compat/libcuda.so.1"
_HEAD = 16
"""Bytes of an ELF file that name its class; all of them are ASCII, as a recording needs."""

_MAX_KERNEL_FILES = 64
"""rocBLAS files kept, one for each ISA."""

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
        places = [path for name in (NVML, CUDA, ZE) for path in self._libraries.find(name)]
        runtime = self._libraries.find_any(*RUNTIMES)
        for path in [*places, *([runtime] if runtime else [])]:
            self._library(path)
        if runtime:
            self._kernels(runtime)
        self._search_path(places)
        if _COMPAT not in self.links and self._machine.exists(_COMPAT):
            self.files.setdefault(_COMPAT, b"")
        self._configured()

    def _library(self, path: str) -> None:
        """Keep one library, and the name with its version where it is a link to that."""
        folder, _, name = path.rpartition("/")
        folder = public(folder)
        real = self._machine.realpath(path).rpartition("/")[2]
        try:
            head = self._machine.read_bytes(path, _HEAD)
        except (OSError, ValueError):
            head = b""
        if real and real != name:
            self.links[f"{folder}/{name}"] = real
        self.files[f"{folder}/{real or name}"] = head if head.isascii() else b""

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
        names = [name for name in (NVML, CUDA, ZE, *RUNTIMES) if name.encode() in cache]
        if cache:
            self.files[_CACHE] = "".join(f"{name}\n" for name in names).encode()
        for path in ("/etc/NIXOS", NIXOS_VERSION):
            if machine.exists(path):
                self.files[path] = b""
        if machine.exists("/etc/NIXOS") and machine.exists("/run/opengl-driver"):
            self.files.setdefault("/run/opengl-driver/lib/libc.so.6", b"")
        # That the loader's folders were recorded: without any library, absence says nothing.
        if libraries.are_recorded:
            self.files.setdefault("/usr/lib/libc.so.6", b"")


def public(folder: str) -> str:
    """Return a folder as a recording writes it: without the name of a person or of a project."""
    if f"{folder}/".startswith(_PUBLIC):
        return folder
    _, python, below = folder.partition("/lib/python3")
    return f"{_PRIVATE}{python}{below}" if python else f"{_PRIVATE}/lib"
