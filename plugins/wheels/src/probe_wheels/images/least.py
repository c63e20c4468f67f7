"""Where an image would run: for which GPUs it has code, and which driver they need at least."""

from __future__ import annotations

from copy import copy
from functools import lru_cache

from probe_wheels.devices import Gpu
from probe_wheels.images.amd_intel import intel_steps
from probe_wheels.images.answers import answer_of
from probe_wheels.images.chip_code import code_steps
from probe_wheels.images.nodes import Node
from probe_wheels.images.nvidia import CDI, LEGACY, known_drivers
from probe_wheels.images.steps import LESS, NO, RUNS, UNKNOWN
from probe_wheels.rules import DRIVERS, TORCH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_wheels.images.contents import Contents

CAPABILITIES = (
    (5, 0), (5, 2), (6, 0), (6, 1), (7, 0), (7, 5), (8, 0), (8, 6), (8, 9),
    (9, 0), (10, 0), (10, 3), (12, 0), (12, 1),
)  # fmt: skip
"""NVIDIA's compute capabilities of boards, without those of Jetson (CUDA Programming Guide)."""

_WORKS = (RUNS, LESS)


def _any_gpu(capability: tuple[int, int]) -> Gpu:
    """Return a board of no brand: what it needs, every board of its capability needs at most."""
    gpu = Gpu(f"sm_{capability[0]}{capability[1]}", "nvidia", "")
    gpu.capabilities, gpu.usable = (capability,), True
    return gpu


def _works(contents: Contents, gpu: Gpu) -> bool:
    """Return whether an image runs on a GPU, however containers get it; not on the CPU instead."""
    contents = copy(contents)
    contents.falls_back = False
    gpu.arch = contents.arch or gpu.arch
    node = Node("", gpu.arch, contents.image.config.os, [gpu])
    node.glibc = (99,)  # nothing but the GPU and its driver is asked about
    answers = []
    for node.mode in (LEGACY, CDI):
        answers.append(answer_of(contents, node))
    return all(answer.word in _WORKS for answer in answers)


# Both are asked again by what is written of an image, and take thousands of judgements each.
@lru_cache(maxsize=1)
def capabilities_of_image(contents: Contents) -> dict[tuple[int, int], tuple[int, ...]]:
    """Return the compute capabilities that an image runs on, each with the least driver."""
    found = {}
    for capability in CAPABILITIES if "nvidia" in contents.vendors else ():
        driver = _least(contents, _any_gpu(capability))
        if driver:
            found[capability] = driver
    return found


@lru_cache(maxsize=1)
def processors_of_image(contents: Contents) -> list[str]:
    """Return AMD's processors that all of an image's deciding code has machine code for."""
    found: list[str] = []
    if "amd" in contents.vendors:
        for name in sorted(
            {str(name) for name in DRIVERS["gfx"].values() if str(name)[:3] == "gfx"}
            | {"gfx942", "gfx950"}
        ):
            gpu = Gpu(name, "amd", name)
            gpu.processor, gpu.usable, gpu.arch = name, True, contents.arch or gpu.arch
            if not any(step.word in (NO, UNKNOWN) for step in code_steps(contents, gpu)):
                found.append(name)
    return found


def vendors_of_image(contents: Contents) -> list[str]:
    """Return the vendors of GPUs that an image runs on at all."""
    runs = {
        "nvidia": lambda: bool(capabilities_of_image(contents)),
        "amd": lambda: bool(processors_of_image(contents)),
        "intel": lambda: any(_runs_on_xe(contents, family) for family in TORCH["xpu"]["families"]),
    }
    return [vendor for vendor in contents.vendors if vendor in runs and runs[vendor]()]


def _runs_on_xe(contents: Contents, family: str) -> bool:
    gpu = Gpu(family, "intel", family)
    gpu.families, gpu.usable, gpu.arch = (family,), True, contents.arch or gpu.arch
    gpu.releases = tuple(DRIVERS["xe"].get(family, ()))
    steps = [*intel_steps(contents, gpu), *code_steps(contents, gpu)]
    return not any(step.word == NO for step in steps)


class Need:
    """The driver that an image needs: on all NVIDIA GPUs of nodes that it runs on, or on a board.

    `driver` is the first with which it runs, () where none of those known does. `problem` is why
    nobody can tell, None where it was tried.
    """

    def __init__(self, contents: Contents, nodes: Sequence[Node]) -> None:
        self._contents = contents
        self._on_nodes = bool(nodes)
        gpus = [_any_gpu(capability) for capability in CAPABILITIES]
        if nodes:
            found = [gpu for node in nodes for gpu in node.gpus if gpu.vendor == "nvidia"]
            gpus = list({gpu.kind: gpu for gpu in found}.values())
        needs = [(gpu, driver) for gpu in gpus if (driver := _least(contents, gpu))]
        self._gpus = [gpu for gpu, _ in needs]
        of_all = max if nodes else min
        self.driver = of_all((driver for _, driver in needs), default=())
        self.problem = contents.problems[0] if contents.problems else None

    def is_met(self, driver: tuple[int, ...]) -> bool:
        """Return whether it runs with a driver: what an image requires may have an upper end."""
        if driver == self.driver:
            return True
        works = []
        for gpu in self._gpus:
            other = copy(gpu)
            other.driver = driver
            works.append(_works(self._contents, other))
        return bool(works) and (all(works) if self._on_nodes else any(works))


def _least(contents: Contents, gpu: Gpu) -> tuple[int, ...]:
    """Return the first driver with which an image runs on a GPU; () for none.

    Code that the newest driver cannot run, no driver can. What the image requires of a driver may
    have an upper end, so all of them are tried.
    """
    other = copy(gpu)
    other.driver = known_drivers()[-1]
    if any(step.word == NO for step in code_steps(contents, other)):
        return ()
    for other.driver in known_drivers():
        if _works(contents, other):
            return other.driver
    return ()
