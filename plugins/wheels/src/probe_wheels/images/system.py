"""What holds for a whole node: platform, the program's loader and libraries, the C library."""

from __future__ import annotations

from probe_wheels.frameworks import framework_of
from probe_wheels.images.config import shell_variables
from probe_wheels.images.nvidia import mounted_by, mounts_program
from probe_wheels.images.steps import LESS, NO, UNKNOWN, Step
from probe_wheels.images.users import user_steps
from probe_wheels.judging import title
from probe_wheels.records import is_library
from probe_wheels.rules import IMAGES, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from probe_wheels.documents import DistributionDoc
    from probe_wheels.images.contents import Contents
    from probe_wheels.images.layers import Binary
    from probe_wheels.images.nodes import Node
    from probe_wheels.images.program import Program

# Names that musl's loader never looks for: it is all of them itself (musl, ldso/dynlink.c).
_OF_MUSL = tuple(f"lib{name}." for name in ("c", "pthread", "rt", "m", "dl", "util", "xnet"))

_BY_MACHINE = ("darwin", "windows")
"""Systems whose engines start containers of Linux in a virtual machine: Docker Desktop, podman."""
_EVERYWHERE = (2, 28)
"""glibc of Debian 10 and RHEL 8: the oldest with which current drivers of GPUs are offered."""


def system_steps(contents: Contents, node: Node) -> Iterator[Step]:
    """Yield the steps that hold for every device of a node."""
    yield _platform(contents, node)
    if not contents.is_environment:
        yield from user_steps(contents)
        yield _program(contents)
        yield from _glibc(contents)
    yield from _instructions(contents, node)


def _platform(contents: Contents, node: Node) -> Step:
    arch, os = contents.arch, contents.image.config.os
    if contents.is_environment:
        return _platform_of_libraries(contents, node)
    if os == "linux" and node.os in _BY_MACHINE:
        reason = f"{node.os} runs containers in a virtual machine with Linux, which is not recorded"
        return Step("platform", UNKNOWN, reason, "", "record the virtual machine: it is the node")
    if os != node.os:
        return Step("platform", NO, f"it is an image for {os}, and the node has {node.os}")
    if arch is None:
        return Step("platform", UNKNOWN, "the image does not say its architecture")
    if node.arch == "unknown":
        return Step("platform", UNKNOWN, "the architecture of the node is unknown")
    same = arch == node.arch or (arch == "i686" and node.arch == "x86_64")
    if arch == "armv7l":
        step = _of_arm(contents.image.config.variant, node)
        if step is not None:
            return step
    elif not same:
        fix = f"take the image for {node.arch}"
        return Step("platform", NO, f"it is built for {arch}, and the node is {node.arch}", "", fix)
    binary = contents.program.binary if contents.program else None
    if binary is not None and binary.machine != arch:
        place = contents.place(contents.program.path) if contents.program else ""
        return Step("platform", NO, f"its program is built for {binary.machine}", place)
    step = _level(contents.image.config.variant, node) or _level_of_base(contents, node)
    return step or Step("platform", "ok", arch)


def _of_arm(variant: str, node: Node) -> Step | None:
    """Return what is wrong with an image for 32-bit ARM: v7 where it names no version.

    The kernel names a version by ``armv6l``. Some processors of 64 bits run such programs.
    """
    level = variant.removeprefix("v") or "7"
    if node.arch == "aarch64":
        reason = "whether the node's processor runs programs for 32-bit ARM is unknown"
        return Step("platform", UNKNOWN, reason, "", "take the image for aarch64")
    own = node.arch.removeprefix("armv")[:1] if node.arch.startswith("armv") else ""
    if own and own >= level:
        return None
    reason = f"it is built for ARMv{level}, and the node is {node.arch}"
    return Step("platform", NO, reason, "", f"take the image for {node.arch}")


def _level(variant: str, node: Node) -> Step | None:
    """Return what is wrong with the level of x86-64 that an image is built for."""
    if node.arch != "x86_64" or not variant:
        return None
    needed, level = IMAGES["levels"].get(variant), f"x86-64-{variant}"
    if needed is None or not node.flags:
        reason = f"whether the node's processor is one of {level} is unknown"
        return Step("platform", UNKNOWN, reason)
    missing = [flag for flag in needed if flag not in node.flags]
    if missing:
        reason = f"it is built for {level}, and the node's processor has no {missing[0]}"
        return Step("platform", NO, reason, "", "take the image for x86-64")
    proof = IMAGES["levels"].get(f"{variant}_proof", ())
    if any(flag not in node.flags for flag in proof):
        return Step("platform", UNKNOWN, f"whether the node's processor is of {level} is unknown")
    return None


def _instructions(contents: Contents, node: Node) -> Iterator[Step]:
    """Yield what frameworks need of a processor of x86-64, where its flags are known."""
    if node.arch != "x86_64" or not node.flags:
        return
    leading = [
        d for d in contents.documents if (e := framework_of(d["name"])) and e[1].get("leads")
    ]
    for document in leading:
        entry = framework_of(document["name"])
        missing = [f for f in (entry[1].get("flags", ()) if entry else ()) if f not in node.flags]
        if missing:
            word = NO if len(leading) == 1 or _all_need(leading, missing[0]) else LESS
            reason = (
                f"{title(document)} needs a processor with {missing[0]}, and the node's has none"
            )
            yield Step("platform", word, reason)


def _all_need(documents: Iterable[DistributionDoc], flag: str) -> bool:
    entries = (framework_of(document["name"]) for document in documents)
    return all(entry and flag in entry[1].get("flags", ()) for entry in entries)


def _level_of_base(contents: Contents, node: Node) -> Step | None:
    """Return whether the image's distribution is built for a higher level than a processor has.

    Its C library then ends each program. Where the processor's flags are unknown it is a new one.
    """
    if node.arch != "x86_64" or not node.flags:
        return None
    texts = (contents.files.text(path) for path in ("/etc/os-release", "/usr/lib/os-release"))
    release = shell_variables(next(filter(None, texts), ""))
    major = release.get("VERSION_ID", "").partition(".")[0]
    table = IMAGES["bases"]
    level = table.get(major, "") if release.get("ID") in table["ids"] and major.isdecimal() else ""
    missing = [flag for flag in IMAGES["levels"].get(level, ()) if flag not in node.flags]
    if not missing:
        return None
    base = f"{release['ID']} {major}"
    reason = f"{base} is built for x86-64-{level}, and the node's processor has no {missing[0]}"
    return Step("platform", NO, reason, "/etc/os-release", "take an image of an older base")


def _platform_of_libraries(contents: Contents, node: Node) -> Step:
    """Return whether the libraries of a Python environment are for the node's processor."""
    for document in contents.documents:
        for path, library in document["files"].items():
            machines = set(library.get("machines", ())) - {"cuda", "amdgpu"}
            if machines and node.arch == "unknown":
                return Step("platform", UNKNOWN, "the architecture of the node is unknown")
            if machines and node.arch not in machines:
                built = " and ".join(sorted(machines))
                reason = f"{title(document)} is built for {built}, and the node is {node.arch}"
                return Step("platform", NO, reason, f"{document['site']}/{path}")
    return Step("platform", "ok", node.arch)


def _program(contents: Contents) -> Step:
    program = contents.program
    folder = contents.image.config.folder
    if folder and contents.files.is_file(folder):
        return Step("loader", NO, f"its WorkingDir {folder} is a file", "WorkingDir")
    if program is None:
        return Step("loader", "ok", "it names no program")
    place = contents.place(program.path)
    if program.missing and mounts_program(program.path):
        return Step("loader", "ok", f"{program.path} comes with NVIDIA's driver")
    if program.missing and program.path.endswith("\r"):
        reason = "the first line of its script ends in a carriage return, as on Windows"
        return Step("loader", NO, reason, f"/{program.hops[-1].lstrip('/')}")
    if program.missing:
        return Step("loader", NO, f"its program {program.path} is not in it", place)
    if program.binary is None:
        return Step("loader", UNKNOWN, f"its program cannot be read: {program.problem}", place)
    loader = program.binary.interpreter
    if loader and contents.files.tree.file(loader.lstrip("/")) is None:
        return Step(
            "loader", NO, f"its program needs the loader {loader}, which is not in it", place
        )
    missing = missing_library(contents, program.binary, program.path)
    if missing is not None:
        user, library = missing
        name = "its program" if user == program.path else user
        reason = f"{name} needs {library}, which is not in it"
        return Step("loader", NO, reason, contents.place(user))
    for library in program.binary.needed:
        if mounted_by(library) or (_is_musl(program) and library.startswith(_OF_MUSL)):
            continue
        if "/" not in library and contents.found(library, program.binary, program.path) is None:
            reason = f"{library} is in no folder where its program's loader looks"
            return Step("loader", UNKNOWN, reason, place)
    return Step("loader", "ok", loader or "static")


def _is_musl(program: Program | None) -> bool:
    """Return whether a program is one for musl's loader."""
    return bool(program and program.binary and "ld-musl-" in program.binary.interpreter)


def missing_library(contents: Contents, binary: Binary, path: str) -> tuple[str, str] | None:
    """Return a file that the loader would load, and what it needs and neither image nor host has.

    None where all is there. The libraries of libraries count, as far as they are found.
    """
    by_musl = _is_musl(contents.program)
    for user, own in contents.linked(binary, path):
        for library in own.needed:
            # A library without a name of its own is needed by its path, and found there.
            known = library.rpartition("/")[2] in contents.names or bool(mounted_by(library))
            known |= by_musl and library.startswith(_OF_MUSL)
            if not known and (user == path or is_library(library)):
                return user, library
    return None


def _glibc(contents: Contents) -> Iterator[Step]:
    """Yield the steps about the C library; host files of NVIDIA need glibc, which musl is not."""
    on_nvidia = "nvidia" in contents.vendors and not contents.shaders
    if contents.is_musl() and on_nvidia:
        reason = "its C library is musl, and the files of NVIDIA's driver need glibc"
        word = UNKNOWN if contents.asks else NO  # a variable alone asks: it may do without
        yield Step("glibc", word, reason, "", "take an image with glibc")
        return
    program = contents.program
    loader = program.binary.interpreter if program and program.binary else ""
    if "ld-musl-" in loader and on_nvidia:
        reason = "its program is one for musl, and the files of NVIDIA's driver need glibc: whether"
        yield Step("glibc", UNKNOWN, f"{reason} it starts one for the glibc that is there, too")
        return
    if program is not None and program.binary is not None:
        step = version_step(contents, program.binary, program.path)
        if step is not None:
            yield step


def version_step(contents: Contents, binary: Binary, path: str) -> Step | None:
    """Return what is wrong with the image's C and C++ libraries for a file and what it links."""
    for user, own in contents.linked(binary, path):
        step = _glibc_step(contents, own.glibc, user) or _cxx_step(contents, own.cxx, user)
        if step is not None:
            return step
    return None


def _cxx_step(contents: Contents, needed: tuple[int, ...], path: str) -> Step | None:
    version = contents.cxx()
    if not needed or not version or needed <= version:
        return None
    reason = f"{path} needs GLIBCXX {text_of(needed)}, and the image's libstdc++ has"
    fix = "take a base with a newer libstdc++"
    return Step("glibc", NO, f"{reason} {text_of(version)}", contents.place(path), fix)


def _glibc_step(contents: Contents, needed: tuple[int, ...], path: str) -> Step | None:
    if not needed:
        return None
    place, version = contents.libc()
    if not place:
        reason = f"{path} needs glibc {text_of(needed)}, and the image has none"
        return Step("glibc", NO, reason, contents.place(path))
    if not version:
        return Step("glibc", UNKNOWN, "the version of its glibc is unknown", contents.place(place))
    if needed > version:
        reason = f"{path} needs glibc {text_of(needed)}, and the image has {text_of(version)}"
        fix = f"take a base with glibc {text_of(needed)} or newer"
        return Step("glibc", NO, reason, contents.place(path), fix)
    return None


def glibc_of_node(glibc: tuple[int, ...], needed: tuple[int, ...], path: str) -> Step | None:
    """Return what is wrong with the node's own glibc for a file of a Python environment."""
    if glibc and needed > glibc:
        reason = f"{path} needs glibc {text_of(needed)}, and the node has {text_of(glibc)}"
        return Step("glibc", NO, reason, path)
    if not glibc and needed > _EVERYWHERE:
        reason = f"{path} needs glibc {text_of(needed)}, and which one the node has is not recorded"
        return Step("glibc", UNKNOWN, reason, path)
    return None
