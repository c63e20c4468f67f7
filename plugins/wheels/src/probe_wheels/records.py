"""The files of installed distributions, by RECORD, by conda's lists, or by a bounded walk.

Their names tell which may hold code for a GPU, and for which machine they are built.
"""

from __future__ import annotations

import os
from io import BytesIO

from probe_wheels.files import Exhausted, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_wheels.files import Budget


SKIPPED = "-"
"""Stands for a file of machine code that decides nothing."""

_KERNEL_FOLDERS = (
    "rocblas", "hipblaslt", "miopen", "aotriton", "hipsparselt", "hiptensor", "rocfft",
)  # fmt: skip

VENDOR_NAMES = {
    "nvidia": "NVIDIA",
    "amd": "AMD",
    "intel": "Intel",
    "apple": "Apple",
    "qualcomm": "Qualcomm",
}

MACHINES = {
    3: "i686",
    21: "ppc64le",
    40: "armv7l",
    62: "x86_64",
    183: "aarch64",
    190: "cuda",
    224: "amdgpu",
    243: "riscv64",
    258: "loongarch64",
}
"""e_machine of ELF files as `uname -m` names it; two are code of GPUs."""

SUFFIXES = (".so", ".pyd", ".dll", ".dylib", ".metallib", ".kpack", ".cubin", ".co", ".hsaco")
"""Endings of the files that are looked into, beside ``.so.4`` with a version."""


def is_library(path: str) -> bool:
    """Return whether the name of a file says that it may hold code for a GPU."""
    name = path.rpartition("/")[2]
    if name.endswith(SUFFIXES):
        return True
    _, dot, version = name.rpartition(".so.")
    return bool(dot) and version.replace(".", "").isdigit()


def code_target(path: str) -> str:
    """Return what the name of a file of machine code says that it is for, or "".

    Those below a library's own folder (rocBLAS, hipBLASLt, MIOpen, AOTriton) do not decide.
    """
    if path.endswith(".cubin"):
        return cubin_target(path)
    if not path.endswith((".co", ".hsaco")):
        return ""
    if any(f"/{name}" in path.lower() for name in _KERNEL_FOLDERS):
        return SKIPPED
    return next((name for name in processors_in(path) if name), "")


def processors_in(text: str) -> list[str]:
    """Return the processors in a text: ``gfx90a`` of Kernels.so-000-gfx90a-xnack-.hsaco."""
    processors = []
    for part in text.split("gfx")[1:]:
        digits = ""
        for char in part:
            if char not in "0123456789abcdef" or len(digits) == 4:
                break
            digits += char
        if len(digits) >= 3:
            processors.append("gfx" + digits)
    return processors


def cubin_target(path: str) -> str:
    """Return ``sm_100a`` of ``fmha/fmhaSm100aKernel.cubin``: the last target in a path, or ""."""
    target = ""
    for part in path.lower().replace("sm_", "sm").split("sm")[1:]:
        end = next((at for at, char in enumerate(part) if not char.isdecimal()), len(part))
        if end in (2, 3):
            target = f"sm_{part[:end]}{part[end : end + 1] if part[end : end + 1] in 'af' else ''}"
    return target


MAX_RECORD = 16 << 20
"""Bytes of a RECORD; tensorflow's and torch's, of 13,000 files, have 1.3 MB."""
MAX_LINES = 400_000
MAX_FILES = 4096
"""Libraries of one distribution; tensorflow has 130."""
MAX_WALK = 50_000

_MARKS = (*(suffix.encode() for suffix in SUFFIXES), b".so.")

# rocBLAS's kernel files carry the processor in their names; without them every matrix product
# fails, whatever code torch itself has (pytorch .ci/manywheel/build_rocm.sh).
_GFX = b"rocblas"


class Listing:
    """What a distribution's own list names.

    `libraries` are paths below its site, `gfx` the processors in names of rocBLAS's kernel files,
    `cubins` counts the files of machine code whose names say their target (flashinfer_cubin has
    15,970, aiter 2,501 for AMD). `missing` and `outside` are libraries that are not there, or lie
    outside of the environment.
    """

    def __init__(self) -> None:
        self.libraries: list[str] = []
        self.cubins: dict[str, int] = {}
        self.gfx: set[str] = set()
        self.missing: list[str] = []
        self.outside: list[str] = []

    def add(self, path: str) -> None:
        """Take a path of the list, if its name says that it may matter."""
        parts = path.split("/")
        if path.startswith("/") or ".." in parts or "\\" in path:
            if is_library(path) and len(self.outside) < 16:
                self.outside.append(path)
            return
        if "gfx" in path and "rocblas" in path:
            self.gfx.update(processors_in(parts[-1]))
        target = code_target(path)
        if target == SKIPPED:
            return
        if target:
            self.cubins[target] = self.cubins.get(target, 0) + 1
        elif is_library(path) and len(self.libraries) < MAX_FILES:
            self.libraries.append(path)


def listing_of(metadata: str, site: str, budget: Budget) -> Listing:
    """Return the files of the distribution whose metadata folder is `metadata`.

    Without a RECORD (a system package, an old egg) the packages that it names are walked.
    """
    listing = Listing()
    raw = _read(os.path.join(metadata, "RECORD"), budget)
    if raw is None:
        for path in _walked(metadata, site, budget):
            listing.add(path)
    else:
        for line in _lines(raw):
            listing.add(line)
    return listing


def _read(path: str, budget: Budget) -> bytes | None:
    """Return the bytes of a RECORD; None where it is absent or useless, and a walk must do."""
    try:
        with budget.open(path) as file:
            raw, size = file.read(0, min(file.size, MAX_RECORD)), file.size
    except (OSError, ValueError) as error:
        budget.fault(path, error)
        return None
    if size > MAX_RECORD:
        budget.fault(path, f"it is longer than {MAX_RECORD >> 20} MiB; the rest was not read")
    elif b"\0" in raw:
        budget.fault(path, "it is no text")
    elif not raw.strip():  # a RECORD lists itself, at least
        budget.fault(path, "it is empty")
        return None
    return raw


def _lines(raw: bytes) -> Iterator[str]:
    """Yield the paths of a RECORD that may matter: of 13,000 lines some hundred.

    The lines are not parsed as CSV: only paths with commas are quoted, and none of a library is.
    """
    for number, line in enumerate(BytesIO(raw)):  # to split 16 MiB of newlines takes a gigabyte
        if number == MAX_LINES:
            return
        path = line[1:].partition(b'"')[0] if line[:1] == b'"' else line.partition(b",")[0]
        if _GFX in path or any(mark in path for mark in _MARKS):
            yield path.decode("utf-8", "replace").rstrip("\r\n")


def _walked(metadata: str, site: str, budget: Budget) -> Iterator[str]:
    """Yield the libraries in the packages of a distribution that has no list of its files."""
    count = 0
    for package in _packages(metadata, site, budget):
        for folder, folders, names in budget.walk(os.path.join(site, package)):
            budget.paths.add(folder)
            count += len(names) + len(folders)
            if count > MAX_WALK:
                return
            try:
                budget.check()
            except Exhausted:
                return
            for name in names:
                yield os.path.relpath(os.path.join(folder, name), site).replace(os.sep, "/")


def _packages(metadata: str, site: str, budget: Budget) -> list[str]:
    """Return the packages that `top_level.txt` names, else the one that is called as it is."""
    try:
        names = read_text(os.path.join(metadata, "top_level.txt"), 64 << 10, budget).split()
    except OSError:
        names = []
    names = names or [os.path.basename(metadata).partition("-")[0]]
    plain = [name for name in names if name.replace("_", "a").replace(".", "a").isalnum()]
    return [name for name in plain if budget.is_folder(os.path.join(site, name))][:64]
