"""Types of what tinygrad's process writes, for type checkers: its lines of JSON are ours."""

from typing import Literal, NotRequired, Required, TypeAlias, TypedDict

__all__ = ["About", "Answer", "Job", "Kind", "Line", "Place", "Style"]

Kind: TypeAlias = Literal["gpu", "npu", "accelerator", "cpu", "display"]
"""The kind of a device, as a sighting has it."""

Style: TypeAlias = Literal["targets", "names", "flags"]
"""How a tinygrad takes its backend: by ``DEV`` targets, ``DEV`` names, or ``CUDA=1``."""


class Place(TypedDict, total=False):
    """Where one index of a backend is. pci_guess: an address without its domain."""

    pci: str
    pci_guess: str
    vendor_id: int | None
    cpu: bool
    name: str | None
    reason: str


class Answer(TypedDict, total=False):
    """What one backend did. opens: None where it was not queried. broke: it ended the process."""

    opens: Required[bool | None]
    executes: bool
    error: str
    broke: bool
    places: list[Place]


class About(TypedDict):
    """What the installed tinygrad is. numbers: the variables that it reads as whole numbers."""

    version: str | None
    backends: list[str]
    style: Style
    numbers: list[str]
    order: list[str]


class Job(TypedDict):
    """also: backends to ask beside those tried by default. skip: backends that have answers."""

    also: list[str]
    skip: list[str]


class Line(TypedDict, total=False):
    """One line. backend: with "try" and "tried"; about: with "hello"; answer: with "tried"."""

    event: Required[Literal["hello", "try", "tried", "end", "failed"]]
    backend: NotRequired[str]
    about: NotRequired[About]
    answer: NotRequired[Answer]
    error: NotRequired[str]
