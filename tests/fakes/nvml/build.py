"""Builds the fake libnvidia-ml.so.1, for tests and for benchmarks that have no GPU.

    python tests/fakes/nvml/build.py FOLDER

prints FOLDER's library. Start the process under test with that folder on LD_LIBRARY_PATH and with
FAKE_NVML_PROFILE naming a profile: the loader reads the variable only at a process's start.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROFILES = HERE / "profiles"
LIBRARY = "libnvidia-ml.so.1"
FLAGS = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
FLAGS += ["-fvisibility=hidden", f"-Wl,-soname,{LIBRARY}"]


class NoCompiler(Exception):
    """There is no C compiler here, so the fake cannot be built."""


def compiler() -> str:
    """Return the C compiler's path (``CC``, cc, gcc or clang); raises `NoCompiler`."""
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        found = shutil.which(name) if name else None
        if found:
            return found
    raise NoCompiler("no C compiler (CC, cc, gcc, clang): the fake NVML cannot be built")


def build(folder: str | Path) -> Path:
    """Return the built library in a folder of its own below `folder`.

    The folder's name holds the sources' hash and the library appears in one step, so that
    processes that test in parallel can share `folder` without a lock.
    """
    sources = sorted(HERE.glob("*.c"))
    marks = b"".join(path.read_bytes() for path in [*sources, *sorted(HERE.glob("*.h"))])
    home = Path(folder) / f"nvml-{hashlib.sha256(marks).hexdigest()[:12]}"
    library = home / LIBRARY
    if not library.exists():
        home.mkdir(parents=True, exist_ok=True)
        fresh = home / f"{LIBRARY}.{os.getpid()}"
        subprocess.run([compiler(), *FLAGS, "-o", str(fresh), *map(str, sources)], check=True)
        fresh.replace(library)
    return library


def environment(library: Path, profile: str | Path, log: Path | None = None) -> dict[str, str]:
    """Return this process's environment, changed so that a child finds the fake first.

    `profile` is the name of one in ``profiles/`` (``h100x8``) or the path of another.
    """
    path = PROFILES / f"{profile}.profile"
    chosen = path if path.exists() else Path(profile)
    places = [str(library.parent), os.environ.get("LD_LIBRARY_PATH", "")]
    changed = dict(os.environ)
    changed["LD_LIBRARY_PATH"] = os.pathsep.join(place for place in places if place)
    changed["FAKE_NVML_PROFILE"] = str(chosen)
    if log is not None:
        changed["FAKE_NVML_LOG"] = str(log)
    return changed


def many(count: int) -> str:
    """Return a profile of `count` GPUs of one invented kind, for measuring how cost grows."""
    lines = ["driver 580.95.05", "cuda 13000"]
    for index in range(count):
        lines += [
            "gpu",
            "name NVIDIA H100 80GB HBM3",
            f"uuid GPU-00000000-0000-4000-8000-{index:012x}",
            f"pci 00000000:{index + 1:02X}:00.0 0x233010DE 0x16C110DE",
            "memory 85520809984 600834048 84913684480 6291456",
            "cc 9.0",
            "cores 16896",
            "clocks 1980 1980 2619 1545",
            "bus-width 5120",
            "pcie 5 16 5 16",
            "mig-mode 0 0 7",
        ]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: build.py FOLDER")
    try:
        print(build(sys.argv[1]))
    except NoCompiler as error:
        sys.exit(str(error))
