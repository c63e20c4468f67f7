"""Which build of PyTorch fits the devices of a node: the choice that installers cannot make.

uv compares the driver alone. A V100 on driver 580 gets a build without its code that way.
"""

from __future__ import annotations

from probe_wheels.devices import TEGRA
from probe_wheels.rules import TORCH, dotted, driver_of_toolkit, runs_on, runs_on_gfx, version_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from probe_wheels.devices import Gpu
    from probe_wheels.documents import BuildDoc

CPU = "cpu"

UNKNOWN = ""
"""In place of a backend where builds are published that nothing here lists."""

# bitsandbytes' installation page and PyTorch's .ci/manywheel/build_cuda.sh of 2.11: what PyTorch's
# index has for aarch64 is made for servers, without 8.7, and Orin on JetPack needs other builds.
JETPACK = (
    "NVIDIA publishes builds for JetPack, which are not listed here: look into its page 'Installing"
    " PyTorch for Jetson Platform' and the package index of the Jetson AI Lab"
)
"""Where to look for a Jetson before Thor, which the index's own builds for CUDA 13 serve."""

_REPAIRABLE = ("permission", "library", "runtime")


class Choice:
    """The build for a node.

    `backend` is uv's name and the index's, or UNKNOWN; `series` the last series of PyTorch that has
    the code, "" for the current one. `served` are the devices that it has code for, `excluded` the
    others with a reason each, `reason` one sentence. `assumed` is the version of CUDA that the
    driver is taken to run where nobody knows the driver: all that is printed goes by it; ""
    elsewhere.
    """

    def __init__(self, backend: str, reason: str, *, series: str = "", toolkit: str = "") -> None:
        self.backend = backend
        self.reason = reason
        self.series = series
        self.toolkit = toolkit
        self.assumed = ""
        self.served: list[Gpu] = []
        self.excluded: list[tuple[Gpu, str]] = []


def pin_of(series: str) -> str:
    """Return the requirement that stays below the first series without the code: ``torch<2.11``."""
    if not series:
        return "torch"
    major, minor = version_of(series)
    return f"torch<{major}.{minor + 1}"


def choose(gpus: Sequence[Gpu], *, musl: bool = False) -> Choice:
    """Return the build for the devices that this process may use; the primary one comes first.

    No build has code for two vendors, and few have it for very old and very new GPUs together:
    the primary device decides, and the others are excluded with a reason.
    """
    usable, excluded = _usable(gpus)
    candidates = []
    for gpu in usable:
        reason = why_no_build(gpu, musl=musl)
        if reason is None:
            candidates.append(gpu)
        else:
            excluded.append((gpu, reason))
    if not candidates:
        reason = "no build of PyTorch has code for a GPU of this node"
        if not gpus:
            reason = "this node has no GPU of NVIDIA, AMD, Intel or Apple"
        elif not usable:
            reason = "no GPU of this node can be used now"
        choice = Choice(CPU, reason)
        if not musl and any(is_jetson(gpu) for gpu in usable):
            reason = f"which build of PyTorch fits this Jetson is not known: {JETPACK}"
            choice = Choice(UNKNOWN, reason)
        choice.excluded = excluded
        return choice
    # An APU beside a card is the smaller device, whichever is listed first.
    first = min(candidates, key=lambda gpu: (not gpu.primary, not gpu.discrete))
    siblings = [gpu for gpu in candidates if gpu.vendor == first.vendor]
    choice = _of_vendor(first, siblings)
    choice.excluded = [*excluded, *choice.excluded]
    for gpu in candidates:
        if gpu.vendor != first.vendor:
            choice.excluded.append((gpu, f"a build of PyTorch serves one vendor: {first.name}"))
    return choice


def _usable(gpus: Iterable[Gpu]) -> tuple[list[Gpu], list[tuple[Gpu, str]]]:
    """Return the devices to choose for, and the others with a reason.

    A device whose driver runs and whose library or permission is broken counts where there is no
    other: its repair changes nothing about the build.
    """
    usable, repairable, excluded = [], [], []
    for gpu in gpus:
        reason = f"it cannot be used now: its step '{gpu.step}' is broken"
        if gpu.usable is not False:
            usable.append(gpu)
        elif gpu.step in _REPAIRABLE:
            repairable.append((gpu, reason))
        elif gpu.step == "visible":
            excluded.append((gpu, "a variable hides it from programs"))
        else:
            excluded.append((gpu, reason))
    if usable:
        return usable, excluded + repairable
    return [gpu for gpu, _ in repairable], excluded


def is_jetson(gpu: Gpu) -> bool:
    """Return whether it is a Jetson whose builds are those for JetPack."""
    return gpu.os == "linux" and gpu.arch == "aarch64" and bool(TEGRA & set(gpu.capabilities))


def why_no_build(gpu: Gpu, *, musl: bool = False) -> str | None:
    """Return why no build of PyTorch has code for a device; None where one has."""
    if musl and gpu.vendor != "apple":
        return "PyTorch has no build for musl (Alpine)"
    if gpu.vendor == "nvidia":
        return _why_no_cuda(gpu)
    if gpu.vendor == "amd":
        return _why_no_rocm(gpu)
    if gpu.vendor == "intel":
        return _why_no_xpu(gpu)
    return None if gpu.vendor == "apple" else "PyTorch has no build for it"


def _why_no_cuda(gpu: Gpu) -> str | None:
    if gpu.os == "darwin":
        return "PyTorch has no build with CUDA for macOS"
    if not gpu.capabilities:
        return "its compute capability is unknown"
    if gpu.os == "windows" and gpu.arch != "x86_64":
        return f"PyTorch has no build with CUDA for {gpu.os} on {gpu.arch}"
    fitting = fitting_builds(gpu)
    if not fitting:
        publisher = "build of PyTorch's index" if is_jetson(gpu) else "published build of PyTorch"
        return f"no {publisher} has code for {gpu.target} on {gpu.arch}"
    if any(_runs(build, gpu) for build in fitting):
        return None
    floors = [driver_of_toolkit(version_of(build["toolkit"]), gpu.os) for build in fitting]
    return f"its driver {dotted(gpu.driver)} is too old: {dotted(min(floors))} is needed"


def _builds(arch: str) -> list[BuildDoc]:
    return [build for build in TORCH["cuda"] if build["arch"] == arch]


def fitting_builds(gpu: Gpu) -> list[BuildDoc]:
    """Return the builds with machine code for a device of NVIDIA, whatever its driver is."""
    return [build for build in _builds(gpu.arch) if _covers(build, gpu)]


def _covers(build: BuildDoc, gpu: Gpu) -> bool:
    toolkit = version_of(build["toolkit"])
    return bool(gpu.capabilities) and all(
        any(runs_on(f"sm_{target}", pair, toolkit) for target in build["targets"])
        for pair in gpu.capabilities
    )


def _runs(build: BuildDoc, gpu: Gpu) -> bool:
    floor = driver_of_toolkit(version_of(build["toolkit"]), gpu.os)
    return _covers(build, gpu) and (not gpu.driver or gpu.driver >= floor)


def _why_no_rocm(gpu: Gpu) -> str | None:
    if gpu.os != "linux" or gpu.arch != "x86_64":
        return f"PyTorch's index has no build with ROCm for {gpu.os} on {gpu.arch}"
    if gpu.processor is None:
        return "its processor (gfx) is unknown"
    if _rocm_backend(gpu.processor) is None:
        return f"no published build of PyTorch has code for {gpu.processor}"
    return None


def _rocm_backend(processor: str) -> str | None:
    for build in TORCH["rocm"]:
        if any(runs_on_gfx(target, processor.partition(":")[0]) for target in build["targets"]):
            return build["backend"]
    return None


def _why_no_xpu(gpu: Gpu) -> str | None:
    if not gpu.families:
        return "its architecture is unknown"
    if not set(gpu.families) <= set(TORCH["xpu"]["families"]):
        return f"PyTorch's XPU build does not support {gpu.target}: it needs Arc, Core Ultra or Max"
    if gpu.os not in ("linux", "windows") or gpu.arch != "x86_64":
        return f"PyTorch has no XPU build for {gpu.os} on {gpu.arch}"
    return None


def _of_vendor(first: Gpu, siblings: list[Gpu]) -> Choice:
    if first.vendor == "nvidia":
        return best_build(first, siblings)
    if first.vendor == "amd":
        choice = Choice(_rocm_backend(first.processor or "") or CPU, "")
        choice.reason = f"PyTorch's build for ROCm has code for {first.target}"
    elif first.vendor == "intel":
        choice = Choice(TORCH["xpu"]["backend"], f"PyTorch's XPU build supports {first.target}")
    else:
        choice = Choice(CPU, "PyTorch's build for macOS has code for Metal")
    choice.served = siblings
    return choice


def best_build(first: Gpu, siblings: Sequence[Gpu]) -> Choice:
    """Return the build that serves `first` and most of the other NVIDIA GPUs.

    Of equal ones the earlier row of the table; a series that is no longer built comes last.
    """
    builds = [build for build in _builds(first.arch) if _runs(build, first)]
    build = max(
        builds,
        key=lambda build: (
            sum(_runs(build, gpu) for gpu in siblings),
            not build["until"],
            # Of an unknown driver: the build that an older driver runs, too.
            0 if first.driver else -version_of(build["toolkit"])[0],
        ),
    )
    choice = Choice(build["backend"], "", series=build["until"], toolkit=build["toolkit"])
    choice.served = [gpu for gpu in siblings if _runs(build, gpu)]
    names = dict.fromkeys(gpu.target for gpu in choice.served)
    choice.reason = f"PyTorch's build for CUDA {build['toolkit']} has code for {', '.join(names)}"
    if not all(gpu.driver for gpu in choice.served):
        choice.assumed = build["toolkit"]
        major = build["toolkit"].partition(".")[0]
        choice.reason += (
            "; the driver's version is unknown:"
            f" one that runs CUDA {major} is assumed, for all frameworks"
        )
    for gpu in siblings:
        if gpu not in choice.served:
            reason = f"no build serves it together with {first.name}"
            choice.excluded.append((gpu, reason))
    return choice
