"""Which framework a distribution is a build of, and which of its libraries decide.

Other distributions may describe more frameworks, in the plugin group `probe_core.frameworks.v1`: an
entry point names a module; beside it lies `frameworks.json`, data alone, with the keys of
data/frameworks.toml. No module is imported, so a broken one costs nobody anything.
"""

from __future__ import annotations

import sys
from itertools import groupby

from probe_core.jsontext import parse
from probe_core.machine import read_regular, text_of
from probe_core.machine.trust import Trust
from probe_core.registry import is_module_name, locate, scan
from probe_wheels.distributions import normal
from probe_wheels.environment import Problem
from probe_wheels.rules import FRAMEWORKS, version_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from probe_core.registry import EntryPoint
    from probe_wheels.documents import DistributionDoc, FrameworkDoc, LibraryDoc
    from probe_wheels.files import Budget


# Libraries of NVIDIA and AMD that wheels carry along: they have code for more GPUs than the
# wheel's own (torch 2.4.1 has a libcusparseLt with PTX for 5.2), and do not decide.
_VENDORED = (
    "libcublas", "libcudnn", "libcudart", "libcufft", "libcufile", "libcurand", "libcusolver",
    "libcusparse", "libnccl", "libnpp", "libnvjitlink", "libnvjpeg", "libnvrtc", "libnvshmem",
    "libnvvm", "libmagma", "librocblas", "libhipblas", "libhipfft", "libhiprand", "libhipsolver",
    "libhipsparse", "libmiopen", "librccl", "librocfft", "librocrand", "librocsolver",
    "librocsparse", "librocprim", "libhiptensor", "libaotriton", "cublas", "cudnn", "cufft",
    "curand", "cusolver", "cusparse", "nvrtc", "nvjitlink", "libtensorrt", "libnvinfer",
    "libcutensor", "libcudss", "libnvcomp", "libucc_",
)  # fmt: skip


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a name is one of the patterns; ``*`` at a pattern's end stands for any end."""
    return any(
        name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
        for pattern in patterns
    )


def framework_of(
    name: str, extra: Mapping[str, FrameworkDoc] | None = None
) -> tuple[str, FrameworkDoc] | None:
    """Return the framework that a distribution is a build of, with its key; exact names first."""
    plain = normal(name)
    tables = [*(extra or {}).items(), *FRAMEWORKS.items()]
    for key, framework in tables:
        if plain in framework["members"]:
            return key, framework
    for key, framework in tables:
        if matches(plain, framework["members"]):
            return key, framework
    return None


def key_of(name: str) -> str:
    """Return the key of the framework that a distribution is a build of, "" for none."""
    entry = framework_of(name)
    return entry[0] if entry else ""


VENDORS = ("nvidia", "amd", "intel", "apple")
"""Those whose code in libraries is known."""


def name_of_builds(path: str) -> str:
    """Return a file's name without the chip that it is built for, which others beside it have.

    Numbers from 50 to 129 are compute capabilities in tens: ``router-80``, ``libkernels_sm90a.so``.
    """
    kept, behind = "", False
    for is_number, group in groupby(path.rpartition("/")[2], str.isdecimal):
        text = "".join(group)
        if is_number and len(text) < 4 and 50 <= int(text) < 130:
            behind = True
            continue
        is_suffix = behind and text[0] in "af" and not text[1:2].isalnum()
        kept, behind = kept + text[is_suffix:], False
    return kept


def has_code(library: LibraryDoc, vendor: str) -> bool:
    """Return whether a library has any code for a vendor's GPUs, readable or not."""
    if vendor == "nvidia":
        return bool(library.get("cuda"))
    if vendor == "amd":
        return bool(library.get("hip") or library.get("unread") or library.get("packs"))
    if vendor == "intel":
        return bool(library.get("intel"))
    return vendor == "apple" and bool(library.get("metal"))


def own_libraries(document: DistributionDoc) -> dict[str, LibraryDoc]:
    """Return the libraries of a distribution that are its own work, not carried along.

    auditwheel puts what a wheel links into ``NAME.libs``; ctranslate2 and faiss have their own
    code there.
    """
    entry = framework_of(document["name"])
    component = entry is not None and entry[0] == "components"
    main = entry[1].get("main", ()) if entry else ()
    named = {
        path: library
        for path, library in document["files"].items()
        if component
        or not path.rpartition("/")[2].lower().startswith(_VENDORED)
        or matches(path.rpartition("/")[2], main)  # TensorRT's own is what others carry along
    }
    plain = {path: library for path, library in named.items() if ".libs/" not in path}
    if any(has_code(library, vendor) for library in plain.values() for vendor in VENDORS):
        return plain
    return named


def vendors_of(document: DistributionDoc) -> list[str]:
    """Return the vendors that a distribution's own libraries have code for."""
    own = own_libraries(document).values()
    return [vendor for vendor in VENDORS if any(has_code(library, vendor) for library in own)]


def main_libraries(
    document: DistributionDoc, framework: FrameworkDoc | None, vendor: str
) -> list[str]:
    """Return the paths of the libraries that decide for a vendor's GPUs, the first one above all.

    The framework's table names them; otherwise it is the one with the most containers.
    """
    own = own_libraries(document)
    paths = [path for path, library in own.items() if has_code(library, vendor)]
    # A library of its own goes before its files of machine code, of which there are thousands.
    paths.sort(key=lambda path: (path == "*.co", -_containers(own[path]), path))
    for pattern in framework.get("main", ()) if framework else ():
        named = [path for path in paths if matches(path.rpartition("/")[2], (pattern,))]
        if named:
            return named
    return paths


def _containers(library: LibraryDoc) -> int:
    groups = (*library.get("cuda", ()), *library.get("hip", ()))
    return sum(count for _, count in groups)


def carriers(
    document: DistributionDoc, framework: FrameworkDoc, documents: Iterable[DistributionDoc]
) -> list[DistributionDoc]:
    """Return the other distributions that carry the code of this one: jaxlib's plugins."""
    return [
        other
        for other in documents
        if other is not document
        and matches(normal(other["name"]), framework.get("elsewhere", ()))
        and (vendors_of(other) or framework_compiles(other))
    ]


def on_torch(document: DistributionDoc) -> bool:
    """Return whether a distribution runs on PyTorch, and not without it."""
    entry = framework_of(document["name"])
    if entry is not None and (entry[1].get("leads") or entry[1].get("needs_torch")):
        return bool(entry[1].get("needs_torch"))
    return any(_name(requirement) == "torch" for requirement in document["requires"])


def framework_compiles(document: DistributionDoc) -> bool:
    """Return whether a distribution makes its code at run time."""
    entry = framework_of(document["name"])
    return entry is not None and bool(entry[1].get("compiles"))


def toolkit_of(document: DistributionDoc) -> tuple[int, ...]:
    """Return the version of CUDA that a distribution says it was built with; () if it does not.

    Its own text first, then its build's tag (cu128), its name (-cu12, -cuda12x), and the
    requirements that it has (nvidia-cublas-cu12, cuda-toolkit==13.0).
    """
    text = document["text"]
    stated = version_of(text.get("cuda") or text.get("cuda_version") or "")
    if stated:
        return stated
    tag = document["build"] or ""
    if tag.startswith("cu") and tag[2:].isdigit():
        return tag_version(tag[2:])
    name = normal(document["name"])
    for mark in ("-cuda", "-cu"):
        digits = name.rpartition(mark)[2].removesuffix("x") if mark in name else ""
        digits = digits.partition("-")[0]
        if digits.isdigit():
            return tag_version(digits)
    return _required(document["requires"])


def tag_version(digits: str) -> tuple[int, ...]:
    """Return (12, 8) of ``128``, (12,) of ``12`` and (9, 2) of ``92``."""
    if len(digits) >= 3:
        return int(digits[:2]), int(digits[2:])
    number = int(digits or 0)
    return (number,) if 10 <= number < 50 else (number // 10, number % 10)


def _name(requirement: str) -> str:
    """Return the distribution that a requirement names."""
    name = next((requirement[:at] for at, c in enumerate(requirement) if c in "=<>!~ [("), "")
    return normal(name or requirement)


def _required(requirements: Iterable[str]) -> tuple[int, ...]:
    for requirement in requirements:
        name = _name(requirement)
        if name.startswith("nvidia-") and name.rpartition("-cu")[2].isdigit():
            return tag_version(name.rpartition("-cu")[2])
        if name == "cuda-toolkit":
            return version_of(requirement.rpartition("==")[2])
    return ()


# Frameworks that other distributions describe.

GROUP = "probe_core.frameworks.v1"
STEM = "probe_core.frameworks.v"
MAX_ENTRIES = 32
FILE_LIMIT = 64 << 10
MAX_ITEMS = 64
MAX_TEXT = 400

_LISTS = ("members", "builds", "main", "parts", "elsewhere", "cpu", "compiles")
_TEXTS = ("title", "source", "plain", "follows")


def extra_frameworks(
    paths: Iterable[str] | None = None, budget: Budget | None = None
) -> tuple[dict[str, FrameworkDoc], list[Problem]]:
    """Return what installed distributions say of frameworks, and what is wrong with their files."""
    frameworks: dict[str, FrameworkDoc] = {}
    problems: list[Problem] = []
    entries, _ = scan(paths, STEM)
    if budget is not None:
        # A distribution that comes or goes changes its folder, another table its own two files.
        budget.paths.update(sys.path if paths is None else paths)
        budget.paths.update(f"{entry.metadata}/entry_points.txt" for entry in entries)
    trust = Trust()
    for entry in entries[:MAX_ENTRIES]:
        try:
            frameworks.update(_read(entry, trust, budget))
        except (OSError, ValueError, RecursionError) as error:
            problems.append(_problem(entry, error))
    return frameworks, problems


def _read(entry: EntryPoint, trust: Trust, budget: Budget | None) -> dict[str, FrameworkDoc]:
    """Return the table of one distribution; raises `ValueError` with the reason."""
    if entry.group != GROUP:
        raise ValueError(f"it needs {entry.group}, this version has {GROUP}")
    if not is_module_name(entry.target):
        raise ValueError(f"its entry point {entry.target[:80]!r} is no module")
    place = locate(entry.target, entry.site)
    if place is None:
        raise ValueError(f"its module {entry.target!r} does not exist")
    name = "frameworks.json"
    if not place.is_package and "." not in entry.target:
        name = f"{entry.target}.frameworks.json"
    path = f"{place.folder}/{name}"
    # As root, a table that somebody else could have written would choose what root installs.
    if reason := trust.reason([path, f"{entry.metadata}/entry_points.txt"]):
        raise ValueError(reason)
    if budget is not None:
        budget.paths.add(path)
    document = parse(text_of(read_regular(path, FILE_LIMIT)))
    if not isinstance(document, dict) or document.get("schema") != 1:
        raise ValueError('expected {"schema": 1, "frameworks": {NAME: {…}}}')
    tables = document.get("frameworks")
    if not isinstance(tables, dict):
        raise ValueError("frameworks is no table")
    return {f"{entry.name}:{key}": _checked(table) for key, table in tables.items()}


def _checked(table: object) -> FrameworkDoc:
    """Return a framework whose values have the right types; raises `ValueError`."""
    if not isinstance(table, dict):
        raise ValueError("a framework is no table")
    for key in _LISTS:
        values = table.get(key, [])
        texts = isinstance(values, list) and all(isinstance(value, str) for value in values)
        if not texts or len(values) > MAX_ITEMS:
            raise ValueError(f"{key} is no list of at most {MAX_ITEMS} texts")
    for key in _TEXTS:
        if not isinstance(table.get(key, ""), str) or len(table.get(key, "")) > MAX_TEXT:
            raise ValueError(f"{key} is no text of at most {MAX_TEXT} characters")
    fixes = table.get("fix", {})
    if not isinstance(fixes, dict) or not all(
        isinstance(fix, str) and fix.isprintable() and len(fix) <= MAX_TEXT
        for fix in fixes.values()
    ):
        raise ValueError("fix is no table of commands")
    missing = [key for key in ("title", "members", "builds", "source") if key not in table]
    if missing:
        raise ValueError(f"{', '.join(missing)} is missing")
    checked: FrameworkDoc = {
        "title": table["title"],
        "members": table["members"],
        "builds": table["builds"],
        "source": table["source"],
        "main": table.get("main", []),
        "parts": table.get("parts", []),
        "elsewhere": table.get("elsewhere", []),
        "cpu": table.get("cpu", []),
        "compiles": table.get("compiles", []),
        "plain": table.get("plain", "unknown"),
        "fix": fixes,
    }
    return checked


def _problem(entry: EntryPoint, error: Exception) -> Problem:
    reason = error.strerror or "it cannot be read" if isinstance(error, OSError) else str(error)
    owner = f"{entry.distribution} {entry.version}".strip()
    return Problem(
        "frameworks-unusable",
        f"{owner}: its table of frameworks was left out",
        reason,
        f"update or remove {entry.distribution}",
        evidence=entry.target,
        severity="warning",
    )
