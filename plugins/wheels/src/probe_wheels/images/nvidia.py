"""NVIDIA's rules for containers: what an image requires, what is mounted, which libcuda is loaded.

Sources: NVIDIA/nvidia-container-toolkit 1.20.0 (internal/config/image, internal/modifier,
cmd/nvidia-cdi-hook/cudacompat) and NVIDIA/libnvidia-container (src/cli/dsl.c, src/nvc_info.c).
"""

from __future__ import annotations

from copy import copy

from probe_core.jsontext import parse
from probe_wheels.rules import DRIVERS, IMAGES, cuda_of_driver, dotted, text_of, version_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from probe_wheels.devices import Gpu

LEGACY, CDI, CSV, APPTAINER = "legacy", "cdi", "csv", "apptainer"
"""How a container gets GPUs: the hook that checks requirements, CDI, Tegra's lists, and `--nv` of
Apptainer, which mounts by a list of its own and knows nothing of compat libraries."""

_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_OPERATORS = ("!=", "<=", ">=", "=", "<", ">")
_PROPERTIES = ("cuda", "driver", "arch", "brand")
MAX_REQUIREMENT = 64 << 10


def brands_of(gpu: Gpu) -> tuple[str, ...]:
    """Return what the tools may call a board's brand; () where nothing tells."""
    rows: list[tuple[str, list[str]]] = IMAGES["brands"]["words"]
    return next((tuple(names) for word, names in rows if word.lower() in gpu.name.lower()), ())


def is_geforce(gpu: Gpu) -> bool | None:
    """Return whether a board is one that no cuda-compat library runs on; None: nobody knows.

    NVIDIA supports data-centre boards, selected RTX boards and Jetson (CUDA Compatibility).
    """
    brands = brands_of(gpu)
    if not brands or {"nvidiartx", "quadro", "quadrortx"} & set(brands):
        return None
    return bool({"geforce", "titan"} & set(brands))


def is_legacy_image(environ: Mapping[str, str]) -> bool:
    """Return whether an image is one of before NVIDIA_REQUIRE_CUDA: it has CUDA_VERSION alone."""
    return bool(environ.get("CUDA_VERSION")) and not environ.get("NVIDIA_REQUIRE_CUDA")


def gives_no_gpu(environ: Mapping[str, str]) -> bool:
    """Return whether a container gets no GPU unless its start asks for one: no variable does."""
    wanted = environ.get("NVIDIA_VISIBLE_DEVICES")
    if wanted is None:
        return bool(environ) and not is_legacy_image(environ)
    return wanted in ("", "void", "none")


WAIVED = "NVIDIA_DISABLE_REQUIRE says that it may do without"


def states_cuda(environ: Mapping[str, str]) -> bool:
    """Return whether the variables of an image say that it is made with CUDA."""
    return "CUDA_VERSION" in environ or any(n.startswith("NVIDIA_REQUIRE_") for n in environ)


def is_waived(environ: Mapping[str, str]) -> bool:
    """Return whether an image says itself that it does without the CUDA that it states."""
    return environ.get("NVIDIA_DISABLE_REQUIRE") in _TRUE


def requirements_of(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what an image requires, by the variable that says it; all of them have to hold."""
    if is_waived(environ):
        return {}
    found = {
        name: value[:MAX_REQUIREMENT]
        for name, value in environ.items()
        if name.startswith("NVIDIA_REQUIRE_") and not name.endswith("_JETPACK") and value.strip()
    }
    if is_legacy_image(environ):
        version = version_of(environ["CUDA_VERSION"])
        if version:
            found["CUDA_VERSION"] = f"cuda>={text_of((*version, 0)[:2])}"
    return found


def start_check(requirement: str, gpu: Gpu) -> bool | None:
    """Return whether the hook lets a container start; None where a fact is unknown.

    A space is OR, a comma AND. Of several brands that the hook may call a board, each is judged by
    itself. Raises `ValueError` for what the hook refuses as it stands.
    """
    answers = {_starts(requirement, gpu, brand) for brand in brands_of(gpu) or ("",)}
    return answers.pop() if len(answers) == 1 else None


def _starts(requirement: str, gpu: Gpu, brand: str) -> bool | None:
    answers = [_all_of(clause, gpu, brand) for clause in requirement.split()]
    if True in answers or not answers:
        return True
    return None if None in answers else False


def _all_of(clause: str, gpu: Gpu, brand: str) -> bool | None:
    answers = [_holds(term, gpu, brand) for term in clause.split(",")]
    if False in answers:
        return False
    return None if None in answers else True


def _holds(term: str, gpu: Gpu, brand: str) -> bool | None:
    at = next((at for at, char in enumerate(term) if char in "=!<>"), len(term))
    name, rest = term[:at], term[at:]
    operator = next((sign for sign in _OPERATORS if rest.startswith(sign)), "")
    value = rest[len(operator) :]
    if name not in _PROPERTIES or not operator or not value:
        raise ValueError(f"{term[:40]!r} is no condition that the hook knows")
    if name == "brand":
        return _brand(operator, value.lower(), brand)
    if not value.replace(".", "").isdigit():
        raise ValueError(f"{term[:40]!r} compares with no number")
    return _compare(name, operator, version_of(value), gpu)


def _brand(operator: str, value: str, brand: str) -> bool | None:
    if operator not in ("=", "!="):
        raise ValueError("a brand is compared by = and != alone")
    return (brand == value) == (operator == "=") if brand else None


def _compare(name: str, operator: str, value: tuple[int, ...], gpu: Gpu) -> bool | None:
    if name == "arch":
        owns: list[tuple[int, ...]] = [*gpu.capabilities]
    elif not gpu.driver:
        return None  # the hook would know it
    elif name == "driver":
        owns = [gpu.driver]
    else:
        owns = [cuda_of_driver(gpu.driver, gpu.os)]
        newest, oldest = DRIVERS["ptx"]["rows"][0], DRIVERS["ptx"]["rows"][-1]
        if not owns[0] and value >= version_of(oldest[1]):
            owns = [(0,)]  # its CUDA is older than the table
        is_newer = gpu.driver[:1] > version_of(newest[2])[:1]
        if is_newer and value > version_of(newest[1]):
            return None  # its CUDA is newer than the table
    answers = {_ordered(own, operator, value) for own in owns if own}
    return answers.pop() if len(answers) == 1 else None


def _ordered(own: tuple[int, ...], operator: str, value: tuple[int, ...]) -> bool:
    length = max(len(own), len(value))
    left, right = (pair + (0,) * (length - len(pair)) for pair in (own, value))
    return {
        "=": left == right,
        "!=": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[operator]


def capabilities_of(environ: Mapping[str, str]) -> set[str]:
    """Return what a container asks of the driver; raises `ValueError` for an unknown word."""
    known = set(IMAGES["mounts"]["words"])
    text = environ.get("NVIDIA_DRIVER_CAPABILITIES", "")
    if not text:
        return known if is_legacy_image(environ) else {"utility", "compute"}
    words = {word.strip() for word in text.split(",") if word.strip()}
    if "all" in words:
        return known
    if words - known:
        raise ValueError(f"NVIDIA_DRIVER_CAPABILITIES has {sorted(words - known)[0]!r}")
    return words


def mounted_by(library: str) -> list[str]:
    """Return the capabilities that bring a library of the host; [] for one of the image's own."""
    stem = library.partition(".so")[0]
    mounts = IMAGES["mounts"]
    return [word for word in mounts["words"] if stem in mounts.get(word, ())]


def mounts_program(name: str) -> list[str]:
    """Return the capabilities that bring a program of the host; [] for one of the image's own."""
    programs: dict[str, list[str]] = IMAGES["mounts"]["programs"]
    return [word for word, names in programs.items() if name.rpartition("/")[2] in names]


class Compat:
    """A cuda-compat libcuda in an image: its version, where it lies, and what its note says.

    `branches` are the drivers' branches that it was made for, None without a note, and `allowed`
    those that the image's own requirement names. `forced` is whether LD_LIBRARY_PATH makes the
    loader take it whatever the host has.
    """

    def __init__(
        self,
        path: str,
        version: tuple[int, ...],
        note: str,
        environ: Mapping[str, str],
        *,
        forced: bool,
    ) -> None:
        self.path = path
        self.version = version
        self.branches = _branches(note)
        self.allowed = _allowed(environ)
        self.forced = forced

    def is_taken(self, mode: str, driver: tuple[int, ...]) -> bool | None:
        """Return whether it stands before the host's libcuda; None where nobody knows."""
        if self.forced or mode == APPTAINER:
            return self.forced
        if not driver or not self.version:
            return None
        if mode == CDI and self.branches is not None:
            return driver[0] in self.branches and self.version > driver
        return self.version[0] > driver[0]

    def fits(self, driver: tuple[int, ...]) -> bool | None:
        """Return whether it works with a kernel driver; None without its note."""
        if self.branches is not None:
            return driver[0] in self.branches
        return True if driver[0] in self.allowed else None


def _allowed(environ: Mapping[str, str]) -> set[int]:
    """Return the drivers' branches that NVIDIA_REQUIRE_CUDA lets in beside newer ones.

    ``brand=tesla,driver>=535,driver<536`` stands there for the compat library of the same image.
    """
    clauses = environ.get("NVIDIA_REQUIRE_CUDA", "")[:MAX_REQUIREMENT].split()
    found = set()
    for terms in (clause.split(",") for clause in clauses):
        lower = [t[8:] for t in terms if t.startswith("driver>=") and t[8:].isdecimal()]
        upper = [t[7:] for t in terms if t.startswith("driver<") and t[7:].isdecimal()]
        if lower and upper and len(lower[0]) < 6 and int(upper[0]) == int(lower[0]) + 1:
            found.add(int(lower[0]))
    return found


def _branches(note: str) -> set[int] | None:
    if not note:
        return None
    try:
        table = parse(note.encode())
    except (ValueError, RecursionError):
        return None
    # The hook is written in Go, whose JSON has no case.
    keys = {str(k).lower(): v for k, v in table.items()} if isinstance(table, dict) else {}
    listed = keys.get("driver")
    if not isinstance(listed, list):
        return None
    return {int(str(item)) for item in listed if str(item).isdecimal() and len(str(item)) < 6}


def known_drivers() -> list[tuple[int, ...]]:
    """Return the drivers with which something new begins, in rising order."""
    rows = {version_of(row[2]) for row in DRIVERS["ptx"]["rows"]}
    rows |= {version_of(text) for text in DRIVERS["majors"]["linux"].values()}
    return sorted(rows)


def last_branch(gpu: Gpu) -> int | None:
    """Return the last branch of the driver that supports a GPU; None for one that all newer do."""
    rows: list[tuple[str, int]] = IMAGES["last"]["branches"]
    own = max(gpu.capabilities, default=None)
    return next((branch for text, branch in rows if own and own <= version_of(text)), None)


def least_driver(requirement: str, gpu: Gpu) -> tuple[int, ...]:
    """Return the first newer driver that the hook accepts; () for none that is known."""
    other = copy(gpu)
    for row in known_drivers():
        other.driver = row
        if row > gpu.driver and start_check(requirement, other):
            return row
    return ()


def driver_text(driver: tuple[int, ...]) -> str:
    """Return ``580.95.05``, or that it is unknown."""
    return dotted(driver) if driver else "of unknown version"
