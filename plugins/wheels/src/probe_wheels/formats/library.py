"""What one file has code for: CUDA, HIP, SYCL or Metal, whatever system it was built for."""

from __future__ import annotations

from probe_wheels.files import Exhausted
from probe_wheels.formats.executables import (
    ELF_MAGIC,
    MACHO_MAGICS,
    BadFile,
    Elf,
    Section,
    read_elf,
    read_macho,
    read_pe,
)
from probe_wheels.formats.gpu_code import (
    built_for,
    cuda_groups,
    hip_groups,
    pack_targets,
    processor_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_wheels.documents import LibraryDoc
    from probe_wheels.files import Budget, Readable
    from probe_wheels.formats.gpu_code import Groups

_SYCL = "__CLANG_OFFLOAD_BUNDLE__sycl-spir64"
_MAX_GROUPS = 512
"""Different sets of targets in one file; libcublasLt, the most varied, has a few dozen."""


def read_library(path: str, budget: Budget) -> LibraryDoc:
    """Return what a file has code for. It raises nothing but `Exhausted`: a problem is a text."""
    known = budget.known(path)
    if known is not None:
        return known
    try:
        with budget.open(path) as file:
            return read_code(file)
    except OSError as error:
        return {"problem": error.strerror or "it cannot be read"}


def read_code(file: Readable) -> LibraryDoc:
    """Return what an open file has code for. It raises nothing but `OSError` and `Exhausted`."""
    try:
        return _read(file)
    except BadFile as error:
        return {"problem": str(error)}
    except (OSError, Exhausted):
        raise
    except (ValueError, OverflowError, MemoryError) as error:
        return {"problem": f"it cannot be read ({type(error).__name__})"}


def _read(file: Readable) -> LibraryDoc:
    magic = file.read(0, 4)
    if magic == ELF_MAGIC:
        return _of_elf(file)
    if magic[:2] == b"MZ":
        return _of_pe(file)
    if magic == b"MTLB":
        return {"format": "metallib", "metal": True}
    if magic == b"KPAK":
        return {"format": "kpack", "hip": [(list(pack_targets(file)), 1)]}
    if magic in MACHO_MAGICS:
        machines, linked = read_macho(file)
        metal = any("/Metal.framework/" in name for name in linked)
        doc: LibraryDoc = {"format": "macho", "machines": machines}
        return {**doc, "metal": True} if metal else doc
    # Linker scripts and stubs are texts with the name of a library.
    return {"format": "other"} if file.size else {"problem": "it is empty"}


def _of_elf(file: Readable) -> LibraryDoc:
    elf = read_elf(file)
    doc: LibraryDoc = {"format": "elf", "machines": [elf.machine]}
    if elf.machine == "cuda":
        target = _cubin_target(elf)
        return {**doc, "cuda": [([target], 1)]} if target else doc
    if elf.machine == "amdgpu":
        processor = processor_of(elf.flags)
        return {**doc, "hip": [([processor], 1)]} if processor else doc
    _add_code(doc, file, elf.sections)
    needed = elf.needed()
    doc["needed"] = [name for name in needed if _is_runtime(name)]
    if any(name.startswith("libvulkan.") for name in needed):
        doc["vulkan"] = True  # ggml's shaders are SPIR-V, which each vendor's driver compiles
    return doc


def _cubin_target(elf: Elf) -> str | None:
    """Return the target of a cubin by its flags.

    Measured on cubins of cuobjdump 13.5: up to ABI 7 the low byte is the target and 0x800 stands
    for "a"; from ABI 8 on the second byte is the target, 4 stands for "a" and 2 for "f".
    """
    if elf.abi >= 8:
        arch = elf.flags >> 8 & 0xFF
        suffix = "a" if elf.flags & 4 else "f" if elf.flags & 2 else ""
    else:
        arch, suffix = elf.flags & 0xFF, "a" if elf.flags & 0x800 else ""
    return f"sm_{arch}{suffix}" if arch else None


def _is_runtime(name: str) -> bool:
    return name.startswith(
        ("libcudart", "libcublas", "libamdhip64", "libsycl", "libze_", "libcuda")
    )


def _of_pe(file: Readable) -> LibraryDoc:
    machine, sections = read_pe(file)
    doc: LibraryDoc = {"format": "pe", "machines": [machine]}
    _add_code(doc, file, sections)
    return doc


def _add_code(doc: LibraryDoc, file: Readable, sections: list[Section]) -> None:
    """Add what the sections of a library hold."""
    cuda: Groups = {}
    hip: Groups = {}
    for section in sections:
        problem = None
        if section.name == ".nv_fatbin":
            groups, problem = cuda_groups(file, section.offset, section.size)
            _merge(cuda, groups)
        elif section.name == "__nv_relfatbin" and section.size:
            doc["relocatable"] = True
        elif section.name == ".hip_fatbin":
            groups, unread, problem = hip_groups(file, section.offset, section.size)
            _merge(hip, groups)
            if unread:
                doc["unread"] = doc.get("unread", 0) + unread
        elif section.name == ".rocm_kpack_ref":
            doc["packs"] = True
        elif section.name.startswith(_SYCL):
            _add_sycl(doc, file, section)
        if problem:
            doc["problem"] = problem
    if cuda:
        doc["cuda"] = [(list(targets), count) for targets, count in cuda.items()]
    if hip and not doc.get("packs"):
        doc["hip"] = [(list(targets), count) for targets, count in hip.items()]


def _add_sycl(doc: LibraryDoc, file: Readable, section: Section) -> None:
    if not section.name.startswith(_SYCL + "_gen"):
        doc["spirv"] = True
        doc.setdefault("intel", "spirv")
        return
    doc["intel"] = "native"
    doc["xe"], generic = built_for(file, section.offset, section.size)
    if generic:
        doc["spirv"] = True


def _merge(total: Groups, groups: Groups) -> None:
    for targets, count in groups.items():
        if targets in total or len(total) < _MAX_GROUPS:
            total[targets] = total.get(targets, 0) + count
