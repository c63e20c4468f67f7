"""The toolkits that an image brings: CUDA with its compat libraries, ROCm with its rocBLAS."""

from __future__ import annotations

from probe_wheels.images.nvidia import Compat
from probe_wheels.records import processors_in
from probe_wheels.rules import version_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from probe_wheels.documents import DistributionDoc
    from probe_wheels.images.tree import Tree
    from probe_wheels.images.view import ImageFiles


COMPAT = "usr/local/cuda/compat"
"""Where NVIDIA's hook looks for compat libraries (nvidia-container-toolkit, cudacompat)."""


def compats_of(files: ImageFiles, environ: Mapping[str, str]) -> list[Compat]:
    """Return the cuda-compat libraries of the image: at most one of them counts."""
    tree, found = files.tree, []
    for name in tree.names(COMPAT):
        if not name.startswith("libcuda.so.") or name.count(".") < 3:
            continue
        file = tree.file(f"{COMPAT}/{name}")
        read = files.read(file) if file else None
        note = read.binary.note if read and read.binary else ""
        version = version_of(name.removeprefix("libcuda.so."))
        forced = _is_forced(tree, environ)
        found.append(Compat(f"/{COMPAT}/{name}", version, note, environ, forced=forced))
    return found


def _is_forced(tree: Tree, environ: Mapping[str, str]) -> bool:
    paths = environ.get("LD_LIBRARY_PATH", "").split(":")
    return any(path and tree.resolve(path) == tree.resolve(COMPAT) for path in paths)


def toolkit_of(names: Iterable[str], environ: Mapping[str, str]) -> tuple[int, ...]:
    """Return the version of the image's own CUDA: its variable, else its runtime's library.

    Of several the lowest: which program takes which is not known, and their code is judged alone.
    """
    stated = version_of(environ.get("CUDA_VERSION", ""))[:2]
    if stated:
        return stated
    parts = (name.partition("libcudart.so.") for name in names)
    return min((version_of(rest)[:2] for _, found, rest in parts if found), default=())


def rocm_of(files: ImageFiles, documents: Iterable[DistributionDoc]) -> tuple[int, ...]:
    """Return the version of ROCm's user space: its own file, else what PyTorch was built with.

    Else that of HIP's library (``libamdhip64.so.6.3.60301``), which has ROCm's (ROCm/clr).
    """
    text = files.text("/opt/rocm/.info/version", 64)
    if version_of(text.strip()):
        return version_of(text.strip())[:2]
    for document in documents:
        stated = document["text"].get("hip") or document["text"].get("rocm") or ""
        if version_of(stated):
            return version_of(stated)[:2]
    parts = (path.partition("/libamdhip64.so.")[2] for path in files.tree.files)
    return max((version_of(rest)[:2] for rest in parts if rest.count(".") > 1), default=())


def rocblas_processors(tree: Tree) -> set[str]:
    """Return the processors that the image's own rocBLAS has kernels for."""
    found: set[str] = set()
    for path in tree.files:
        if "rocblas/library/" in path and "gfx" in path:
            found.update(processors_in(path.rpartition("/")[2]))
    return found
