"""What an image is for: whose GPUs its code asks for, and whether it does without one.

A framework says so in data/frameworks.toml, libraries outside of packages in data/images.toml.
"""

from __future__ import annotations

from probe_wheels.frameworks import (
    VENDORS,
    framework_of,
    has_code,
    key_of,
    on_torch,
    own_libraries,
    vendors_of,
)
from probe_wheels.judging import is_cpu_build
from probe_wheels.rules import IMAGES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from probe_wheels.documents import DistributionDoc

FIRST, TAKING, NEEDING = "first", "taking", "needing"
"""What code does: it takes the CPU first, takes it where it finds no GPU, or needs a GPU."""

_STARTERS = ("tini", "dumb-init", "catatonit", "init")
"""Programs that start another one, which their arguments name."""


class Purpose:
    """What the code of an image, all in all, is for.

    `vendors` are those whose GPUs it has code for, `compiling` those whose it makes code for at run
    time. `use` is what it does without a GPU, `skips` whether it leaves a GPU out that its code is
    not for. `components` is whether it has libraries of vendors alone, which nothing here uses.
    """

    def __init__(self) -> None:
        self.vendors: set[str] = set()
        self.compiling: set[str] = set()
        self.use = NEEDING
        self.skips = False
        self.components = False


def purpose_of(documents: Sequence[DistributionDoc], names: Iterable[str]) -> Purpose:
    """Return what the code of distributions, and of libraries beside them, is for."""
    purpose = Purpose()
    present = set(names)
    is_for_cpu = any(_is_for_cpu(d) and key_of(d["name"]) == "torch" for d in documents)
    counted: list[tuple[str, bool]] = []
    compiling: list[tuple[str, bool]] = []
    components: set[str] = set()
    for document in documents:
        if is_for_cpu and on_torch(document):
            continue  # what runs on PyTorch has no use for its code beside one for the CPU
        vendors = set(vendors_of(document))
        entry = framework_of(document["name"])
        if entry and entry[0] == "components":
            components |= vendors
        elif vendors or _shaders(document):
            purpose.vendors |= vendors
            counted.append(_use(document, present))
        elif entry and document["text"].get("cuda"):
            purpose.vendors.add("nvidia")
            counted.append(_use(document, present))
        elif entry and entry[1].get("compiles"):
            purpose.compiling.update(entry[1].get("compiles", ()))
            compiling.append(_use(document, present))
    if not counted and any(map(_is_for_cpu, documents)):
        # What programs are written for takes the CPU, whatever its base, or Triton, is made for.
        purpose.use, purpose.skips = TAKING, True
        if any(use == NEEDING for use, _ in compiling):
            purpose.compiling, compiling = set(), []
    # What compiles at run time (triton) works for the framework beside it, which decides.
    uses = counted or compiling
    if uses:
        words = {use for use, _ in uses}
        purpose.use = next(word for word in (NEEDING, TAKING, FIRST) if word in words)
        purpose.skips = all(skips for _, skips in uses)
    elif components:
        purpose.vendors, purpose.components = components, True
    return purpose


def _is_for_cpu(document: DistributionDoc) -> bool:
    """Return whether a distribution is a framework that programs are written for, for the CPU."""
    entry = framework_of(document["name"])
    if entry is None or not entry[1].get("leads") or vendors_of(document):
        return False
    return is_cpu_build(document) or entry[1].get("plain") == "cpu"


def _use(document: DistributionDoc, names: set[str]) -> tuple[str, bool]:
    """Return what code does without a GPU, and whether it skips one that it has none for."""
    entry = framework_of(document["name"])
    if entry is not None:
        first = bool(entry[1].get("cpu_first"))
        use = FIRST if first else TAKING if entry[1].get("falls_back") else NEEDING
        return use, first or bool(entry[1].get("skips"))
    rows = [_row(f"{document['site']}/{path}") for path in _code(document)]
    if not rows or not all(row and _has(names, row[1]) for row in rows):
        return NEEDING, False
    return TAKING, all(row[2] for row in rows if row)


def _code(document: DistributionDoc) -> list[str]:
    return [
        path
        for path, library in own_libraries(document).items()
        if any(has_code(library, vendor) for vendor in VENDORS) or library.get("vulkan")
    ]


def _shaders(document: DistributionDoc) -> bool:
    return any(library.get("vulkan") for library in own_libraries(document).values())


def _row(path: str) -> tuple[str, str, bool] | None:
    """Return the row of `backends` for a file: by its folder or the start of its name."""
    rows: list[tuple[str, str, bool]] = IMAGES["backends"]["rows"]
    name = path.rpartition("/")[2]
    return next(
        (row for row in rows if (path if row[0][:1] == "/" else name).startswith(row[0])), None
    )


def is_backend(path: str) -> bool:
    """Return whether a program loads a file of code for GPUs only where it finds a GPU."""
    return _row(path) is not None


def _has(names: set[str], start: str) -> bool:
    return any(name.startswith(start) for name in names)


def watcher_of(words: Iterable[str], names: set[str]) -> str:
    """Return the program by which an image watches GPUs, or hands them out; "" for no such one.

    `words` are Entrypoint and Cmd. A script may be named after the program that it starts.
    """
    table = IMAGES["watchers"]
    known = [*table["needing"], *table["others"]]
    return next(
        (
            name
            for word in _started(words)
            for name in known
            if word == name or (word.startswith(name) and name in names)
        ),
        "",
    )


def _started(words: Iterable[str]) -> Iterator[str]:
    """Yield the names of what Entrypoint and Cmd start: the first word, and behind scripts others.

    What a shell's ``-c`` has is not read: it may start several programs.
    """
    for word in words:
        name = word.rpartition("/")[2]
        if not word.startswith("-"):
            yield name
            if not name.endswith(".sh") and name not in _STARTERS:
                return


def is_spared(words: Iterable[str], names: set[str]) -> bool:
    """Return whether what an image starts takes a GPU only where it is told to.

    Where scripts alone are known (`/init`), it is a program of that name in the image.
    """
    programs: list[str] = IMAGES["spared"]["programs"]
    started = list(_started(words))
    if any(name in programs for name in started):
        return True
    hidden = bool(started) and (started[-1].endswith(".sh") or started[-1] in _STARTERS)
    return hidden and any(name in names for name in programs)
