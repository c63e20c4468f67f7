"""The rules of `data`: which code runs on which GPU, and which NVIDIA driver a build needs.

People edit the tables as TOML. A wheel has them as JSON beside it, made by its build hook: to read
TOML takes 15 ms of each start. A checkout has no JSON, so that what is edited counts at once.
"""

from __future__ import annotations

from pathlib import Path

from probe_core.jsontext import parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from probe_wheels.documents import DriversDoc, FrameworkDoc, ImagesDoc, TorchDoc


FOLDER = Path(__file__).with_name("data")

ARCHES = {"arm64": "aarch64", "amd64": "x86_64"}
"""Names of architectures that others use for what `uname -m` of Linux says."""


def _table(name: str) -> Any:
    made = FOLDER / f"{name}.json"
    if made.exists():
        return parse(made.read_bytes())
    import tomllib

    return tomllib.loads((FOLDER / f"{name}.toml").read_text("utf-8"))


DRIVERS: DriversDoc = _table("drivers")
FRAMEWORKS: dict[str, FrameworkDoc] = _table("frameworks")
TORCH: TorchDoc = _table("torch")
IMAGES: ImagesDoc = _table("images")


# Which code runs on which GPU: pure rules over targets and what a device is.

# Code for a discrete GPU of a series does not run on the series' Jetson, until toolkit 13.2
# (torch 2.14, torch/cuda/__init__.py, DEVICE_REQUIREMENT and …_POST_JETSON_SBSA_UNIFICATION).
_JETSONS = {(5, 3), (6, 2), (7, 2), (8, 7)}
_UNIFIED = (13, 2)
_UNIFIED_TARGETS = {(7, 0), (8, 0), (8, 6)}

_THOR = {(10, 1), (11, 0)}
"""Two names of one chip: CUDA 13 renamed 10.1 to 11.0."""


def version_of(text: str) -> tuple[int, ...]:
    """Return the numbers at the start of a version: (580, 95, 5) of ``580.95.05``."""
    numbers = []
    for part in text.split("."):
        digits = part[: next((at for at, c in enumerate(part) if not c.isdecimal()), len(part))]
        if not digits or len(digits) > 9:
            break
        numbers.append(int(digits))
        if digits != part:
            break
    return tuple(numbers)


def _capability(target: str) -> tuple[tuple[int, int], str]:
    """Return capability and suffix of ``sm_90a`` or ``ptx_120f@8.8``."""
    number = target.partition("_")[2].partition("@")[0]
    suffix = number[-1] if number[-1:].isalpha() else ""
    digits = number.removesuffix(suffix)
    return (int(digits[:-1] or 0), int(digits[-1:] or 0)), suffix


def isa_of(target: str) -> tuple[int, ...]:
    """Return the PTX ISA version of ``ptx_90@8.7``."""
    return version_of(target.partition("@")[2])


def runs_on(target: str, device: tuple[int, int], toolkit: tuple[int, ...] = ()) -> bool:
    """Return whether machine code for `target` runs on a GPU of a compute capability.

    `toolkit` is the version of CUDA that it was built with, as far as it is known.
    """
    if not target.startswith("sm_"):
        return False
    code, suffix = _capability(target)
    if code == device:
        return True
    if {code, device} <= _THOR:
        return True
    if suffix == "a" or code in _THOR or device in _THOR:
        return False
    if code[0] != device[0] or code[1] > device[1]:
        return False
    if device in _JETSONS or code in _JETSONS:
        return toolkit >= _UNIFIED and code in _UNIFIED_TARGETS
    return True


def compiles_on(target: str, device: tuple[int, int]) -> bool:
    """Return whether a driver that knows its ISA can compile this PTX for a compute capability."""
    if not target.startswith("ptx_"):
        return False
    code, suffix = _capability(target)
    if suffix == "a":
        return code == device
    if suffix == "f":
        return code[0] == device[0] and code[1] <= device[1]
    return code <= device


def runs_on_gfx(target: str, device: str, xnack: bool | None = None) -> bool:
    """Return whether an AMD code object runs on a processor: ``gfx90a:xnack-`` on ``gfx90a``.

    `xnack` is whether retries of page faults are on; None where nobody knows, and off is the
    default. Flags that the device's own name carries must not contradict.
    """
    processor, *flags = target.split(":")
    own, *features = device.split(":")
    generic = DRIVERS["generic"].get(processor)
    if processor != own and not (isinstance(generic, list) and own in generic):
        return False
    for flag in flags:
        name, sign = flag[:-1], flag[-1:]
        if any(feature[:-1] == name and feature[-1:] != sign for feature in features):
            return False
        if flag == "xnack+" and "xnack+" not in features and not xnack:
            return False
        if flag == "xnack-" and xnack:
            return False
    return True


def runs_on_xe(versions: Iterable[str], release: str) -> bool:
    """Return whether SYCL code built for IP versions runs on an Intel release: ``12.56``.

    The revision, the third number, is left out: what is sold of a release has one.
    """
    for version in versions:
        built = version.rpartition(".")[0]
        siblings = DRIVERS["xe_runs"].get(built)
        if built == release or (isinstance(siblings, list) and release in siblings):
            return True
    return False


# Which NVIDIA driver a build needs: rules of minor-version compatibility and of PTX.


def driver_of_toolkit(toolkit: tuple[int, ...], os: str) -> tuple[int, ...]:
    """Return the first driver that runs machine code of a toolkit; () when nobody knows it."""
    if not toolkit:
        return ()
    majors = DRIVERS["majors"]["windows" if os == "windows" else "linux"]
    return version_of(majors.get(str(toolkit[0]), ""))


def driver_of_ptx(isa: tuple[int, ...], os: str) -> tuple[int, ...]:
    """Return the first driver that compiles a PTX ISA; () when it is newer than the table.

    Windows' drivers have the branch's number, too, and then numbers of their own.
    """
    for row, _, driver in reversed(DRIVERS["ptx"]["rows"]):
        if isa <= version_of(row):
            return _first_driver(driver, os)
    return ()


def cuda_of_driver(driver: tuple[int, ...], os: str) -> tuple[int, ...]:
    """Return the newest CUDA that a driver has: (13, 0) of 580.95.05; () below 10.2."""
    for _, toolkit, first in DRIVERS["ptx"]["rows"]:
        if driver >= _first_driver(first, os):
            return version_of(toolkit)
    return ()


def _first_driver(text: str, os: str) -> tuple[int, ...]:
    version = version_of(text)
    return version[:1] if os == "windows" else version


def toolkit_of_ptx(isa: tuple[int, ...]) -> tuple[int, ...]:
    """Return the toolkit that writes a PTX ISA; the newest that is known for a newer one."""
    for row, toolkit, _ in reversed(DRIVERS["ptx"]["rows"]):
        if isa <= version_of(row):
            return version_of(toolkit)
    return version_of(DRIVERS["ptx"]["rows"][0][1])


def text_of(version: Iterable[int]) -> str:
    """Return ``12.8`` of (12, 8): the version of a toolkit or a series; `dotted` is for drivers."""
    return ".".join(map(str, version))


def dotted(version: tuple[int, ...]) -> str:
    """Return ``570.26`` of (570, 26), and ``525.60.13`` of (525, 60, 13)."""
    first, *others = version
    return ".".join([str(first), *(f"{number:02d}" for number in others)])
