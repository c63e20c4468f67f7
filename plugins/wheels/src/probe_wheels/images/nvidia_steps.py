"""Steps for a GPU of NVIDIA: the hook's start check, what is mounted, which libcuda is loaded."""

from __future__ import annotations

from probe_wheels.images.nvidia import (
    CSV,
    LEGACY,
    WAIVED,
    brands_of,
    capabilities_of,
    driver_text,
    is_geforce,
    is_waived,
    last_branch,
    least_driver,
    mounted_by,
    mounts_program,
    requirements_of,
    start_check,
    states_cuda,
)
from probe_wheels.images.steps import NO, UNKNOWN, Step
from probe_wheels.images.toolkits import COMPAT
from probe_wheels.rules import cuda_of_driver, dotted, driver_of_toolkit, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_wheels.devices import Gpu
    from probe_wheels.images.contents import Contents
    from probe_wheels.images.layers import Binary
    from probe_wheels.images.nvidia import Compat


def nvidia_steps(contents: Contents, gpu: Gpu, mode: str) -> Iterator[Step]:
    """Yield the steps of NVIDIA's; `gpu` gets the driver version of the libcuda that is loaded."""
    if mode == CSV or not gpu.driver:
        reason = "the version of the node's NVIDIA driver is unknown"
        if gpu.capabilities and gpu.arch == "aarch64" and not gpu.discrete:
            reason = "what JetPack's lists of files mount is not recorded"
        yield Step("driver", UNKNOWN, reason)
    last = last_branch(gpu)
    if last and gpu.driver and gpu.driver[0] > last:
        reason = f"NVIDIA's driver {dotted(gpu.driver)} does not support {gpu.target}"
        fix = f"install the driver's branch {last}, the last one that does"
        yield Step("driver", NO, reason, "", fix)
    if mode == LEGACY:
        yield from _start_check(contents, gpu)
        yield from _mounts(contents)
    if not contents.watcher:
        yield from _libcuda(contents, gpu, mode)


def _start_check(contents: Contents, gpu: Gpu) -> Iterator[Step]:
    for name, requirement in requirements_of(contents.environ).items():
        try:
            answer = start_check(requirement, gpu)
        except ValueError as error:
            reason = f"the hook refuses {name}: {error}"
            yield Step("start check", NO, reason, name, ends=True)
            return
        if answer is False:
            brand = (brands_of(gpu) or ("unknown",))[0]
            reason = (
                f"the hook refuses the start: driver {driver_text(gpu.driver)} of a board of the"
            )
            reason += f" brand {brand} is none that {name} allows"
            fix = _start_fix(contents, requirement, gpu)
            place = f"{name}={requirement[:60]}"
            yield Step("start check", NO, reason, place, fix, ends=True)
            return
        if answer is None:
            reason = f"whether {name} holds is unknown"
            yield Step("start check", UNKNOWN, reason, name, ends=True)


def _start_fix(contents: Contents, requirement: str, gpu: Gpu) -> str:
    driver = least_driver(requirement, gpu)
    fix = f"update the driver to {dotted(driver)}" if driver else "take an image of an older CUDA"
    if gpu.driver >= driver_of_toolkit(contents.toolkit, gpu.os):
        fix += ", or let containers get GPUs by CDI, which checks none of it"
    return fix


def _mounts(contents: Contents) -> Iterator[Step]:
    """Yield what the hook does not mount, by NVIDIA_DRIVER_CAPABILITIES."""
    name = "NVIDIA_DRIVER_CAPABILITIES"
    try:
        words = capabilities_of(contents.environ)
    except ValueError as error:
        yield Step("libcuda", NO, f"the hook refuses the start: {error}", name, ends=True)
        return
    if "compute" not in words and _computes(contents):
        fix = f"set {name}=compute,utility"
        yield Step("libcuda", NO, f"{name} is without compute: no libcuda is mounted", name, fix)
        return
    program = contents.program
    brought = mounts_program(program.path) if program and program.missing else []
    if program and brought and not words & set(brought):
        reason = f"its program {program.path} comes with {' or '.join(brought)}"
        yield Step("libcuda", NO, reason, name, f"add {brought[0]} to {name}")
    elif contents.watcher and "utility" not in words:
        reason = f"{name} is without utility: no libnvidia-ml is mounted"
        yield Step("libcuda", NO, reason, name, f"add utility to {name}")
    if program is not None and program.binary is not None:
        yield from _unmounted(contents, program.path, program.binary, words)


def _unmounted(contents: Contents, path: str, binary: Binary, words: set[str]) -> Iterator[Step]:
    """Yield a library of the driver that a program, or what it links, needs and nothing mounts."""
    name = "NVIDIA_DRIVER_CAPABILITIES"
    for user, own in contents.linked(binary, path):
        for library in own.needed:
            wanted = mounted_by(library)
            if wanted and not words & set(wanted) and not contents.found(library, own, user):
                needing = "its program" if user == path else user
                reason = f"{needing} needs {library}, which comes with {' or '.join(wanted)}"
                yield Step("libcuda", NO, reason, name, f"add {wanted[0]} to {name}")


def _computes(contents: Contents) -> bool:
    """Return whether an image needs libcuda: what only watches GPUs, or draws, does not."""
    return (
        bool(
            contents.documents
            or contents.toolkit
            or contents.host_library.startswith("libcuda.so")
            or states_cuda(contents.environ)
        )
        and not contents.watcher
    )


def _chooses(contents: Contents, gpu: Gpu) -> bool:
    """Return whether a start script of the image (NGC's) chooses the libcuda for this driver."""
    if not contents.chooser or not gpu.driver:
        return False
    return cuda_of_driver(gpu.driver, gpu.os) < contents.toolkit


def _is_libcuda(path: str, compat: str) -> bool:
    """Return whether a file of the image is what a loader takes for the driver's library."""
    folder, _, name = path.rpartition("/")
    is_other = folder == compat or folder.endswith(("/compat", "/stubs"))
    return name == "libcuda.so.1" and not is_other


def _own_libcuda(contents: Contents) -> Step | None:
    """Return that nobody knows which libcuda is loaded: the image has one that is no compat's."""
    tree = contents.files.tree
    compats = {compat.path.rpartition("/")[2] for compat in contents.compat}
    compat = tree.resolve(COMPAT)
    every = [path for path in (*tree.files, *tree.links) if "/libcuda.so." in path]
    # NGC's start script links compat/lib to lib.real where it chooses that one, and not before.
    chosen = f"{compat}/lib.real/" if contents.chooser else ""
    looked = {tree.resolve(folder) for folder in contents.library_path}
    if chosen and chosen.rstrip("/") not in looked:
        every = [path for path in every if not path.startswith(chosen)]
    names = {path.rpartition("/")[2] for path in every}
    own = sorted(name for name in names if name not in compats and name.count(".") > 2)
    own += [f"/{path}" for path in every if _is_libcuda(path, compat) and tree.file(path)]
    if not own:
        return None
    reason = f"it has a libcuda of its own ({own[0]}), and which one is loaded is unknown"
    return Step("libcuda", UNKNOWN, reason)


def _stub(contents: Contents) -> Step | None:
    """Return what a stub of libcuda does where the loader looks: it stands before the driver's.

    Without the name ``libcuda.so.1`` it is for linkers alone (CUDA Driver API, CUresult, 34).
    """
    tree = contents.files.tree
    for where, folders in (("LD_LIBRARY_PATH", contents.library_path), ("", contents.configured)):
        for folder in folders:
            real = tree.resolve(folder)
            if real.endswith("/stubs") and "libcuda.so.1" in tree.names(real):
                place = contents.place(f"/{real}/libcuda.so.1")
                if where:
                    reason = f"{where} leads to a stub of libcuda (CUDA error 34)"
                    return Step("libcuda", NO, reason, place, f"leave /{real} out of {where}")
                reason = "whether the loader takes the image's stub of libcuda is unknown"
                return Step("libcuda", UNKNOWN, reason, place)
    return None


def _libcuda(contents: Contents, gpu: Gpu, mode: str) -> Iterator[Step]:
    compats = contents.compat
    if _chooses(contents, gpu):
        gpu.driver = ()
        cuda = text_of(contents.toolkit)
        reason = f"which libcuda {contents.chooser} takes below CUDA {cuda} is unknown"
        fix = "update the driver to one of the image's CUDA"
        yield Step("libcuda", UNKNOWN, reason, contents.place(contents.chooser), fix)
        return
    own = _stub(contents) or _own_libcuda(contents)
    if own is not None:
        yield own
        return
    if len(compats) != 1:
        if any(compat.forced for compat in compats):
            yield Step("libcuda", UNKNOWN, "LD_LIBRARY_PATH leads to several compat libraries")
        return
    compat, place = compats[0], contents.place(compats[0].path)
    taken = compat.is_taken(mode, gpu.driver)
    if taken is None:
        yield Step("libcuda", UNKNOWN, "whether its compat libcuda is used is unknown", place)
    if not taken:
        return
    if compat.version[:2] < gpu.driver[:2]:
        reason = f"LD_LIBRARY_PATH leads to libcuda {dotted(compat.version)}, older than the node's"
        reason += f" driver {dotted(gpu.driver)} (CUDA error 803)"
        yield Step("libcuda", NO, reason, place, "leave the compat folder out of LD_LIBRARY_PATH")
        return
    if compat.version != gpu.driver:
        yield from _taken(contents, gpu, compat, place)


def _taken(contents: Contents, gpu: Gpu, compat: Compat, place: str) -> Iterator[Step]:
    """Yield whether a board runs with a newer libcuda than its kernel driver's."""
    refused = is_geforce(gpu)
    if refused:
        yield _on_geforce(contents, compat, place)
    elif refused is None:
        reason = f"whether {gpu.name} runs with a compat libcuda is unknown: selected boards do"
        yield _unsure(gpu, reason, place)
    elif not compat.fits(gpu.driver):
        branch = gpu.driver[0]
        reason = f"whether the driver's branch {branch} runs its compat libcuda is unknown"
        if compat.fits(gpu.driver) is None:
            yield _unsure(gpu, reason, place)
        else:  # its own note leaves the branch out: no more than the driver itself is certain
            yield Step("libcuda", UNKNOWN, reason, place)
    else:
        gpu.driver = compat.version


def _unsure(gpu: Gpu, reason: str, place: str) -> Step:
    """Return that nobody knows whether a libcuda works: what needs one has no driver's version."""
    gpu.driver = ()
    return Step("libcuda", UNKNOWN, reason, place)


def _on_geforce(contents: Contents, compat: Compat, place: str) -> Step:
    """Return that no GeForce runs with the compat library that is taken."""
    reason = f"its compat libcuda {dotted(compat.version)} is used, and no GeForce runs with it"
    fix = f"update the driver to {compat.version[0]}, or remove /usr/local/cuda/compat"
    step = Step("libcuda", NO, f"{reason} (CUDA error 804)", place, fix)
    # A program without code that uses NVML alone never loads it.
    if is_waived(contents.environ) and not contents.documents:
        step.word, step.reason = UNKNOWN, f"{step.reason}; {WAIVED}"
    return step
