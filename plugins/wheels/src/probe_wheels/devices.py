"""What a wheel's code must fit: a device's capability or processor, and its driver."""

from __future__ import annotations

from probe_core.model.verdict import step_without_kfd, usable_here
from probe_wheels.rules import ARCHES, DRIVERS, version_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from probe_chipdb import Chip, Database
    from probe_core.machine import Machine
    from probe_core.model.document import DeviceDoc, ReportDoc

KINDS = ("gpu", "accelerator")
VENDORS = ("nvidia", "amd", "intel", "apple", "qualcomm")

# Tegra's driver has its own numbers: JetPack 6 calls 12.6's driver 540.4.0.
TEGRA = {(3, 2), (5, 3), (6, 2), (7, 2), (8, 7)}


class Gpu:
    """One device that programs could compute on.

    `capabilities` are NVIDIA's, several where the chip is ambiguous; `processor` is AMD's
    ("gfx1100"); `families` and `releases` (IP versions, all that it may have) are Intel's. `driver`
    is the version of NVIDIA's, () where nobody knows it. `usable` is whether this process may use
    it (None where nobody could tell), `step` the step that keeps it away. `discrete` is whether it
    has memory of its own.
    """

    def __init__(self, id_: str, vendor: str, name: str) -> None:
        self.id = id_
        self.vendor = vendor
        self.name = name
        self.os = "linux"
        self.arch = "x86_64"
        self.capabilities: tuple[tuple[int, int], ...] = ()
        self.processor: str | None = None
        self.families: tuple[str, ...] = ()
        self.releases: tuple[str, ...] = ()
        self.driver: tuple[int, ...] = ()
        self.usable: bool | None = None
        self.step: str | None = None
        self.primary = False
        self.discrete = True
        self.xnack: bool | None = None

    @property
    def kind(self) -> tuple[object, ...]:
        """What decides whether code runs on it: equal for devices that take the same code."""
        facts = (self.capabilities, self.processor, self.families, self.releases, self.driver)
        return (self.vendor, self.name, self.os, self.arch, self.xnack, *facts)

    @property
    def target(self) -> str:
        """What its code must be for, as people write it: ``sm_89``, ``gfx1100``, ``Xe-HPG``."""
        if self.vendor == "nvidia":
            return " or ".join(f"sm_{major}{minor}" for major, minor in self.capabilities)
        return self.processor or " or ".join(self.families)


def gpus_of(report: ReportDoc, environ: Mapping[str, str]) -> list[Gpu]:
    """Return the devices of a report that wheels can have code for, the primary one first.

    Parts of a GPU are left out where the whole GPU is listed, too: it can be used if one can.
    """
    listed = {device["id"] for device in report["devices"]}
    parts: dict[str, list[DeviceDoc]] = {}
    for device in report["devices"]:
        if device["parent"] in listed:
            parts.setdefault(device["parent"], []).append(device)
    lookup = _Chips()
    gpus = []
    for device in report["devices"]:
        is_whole = device["parent"] not in listed
        if is_whole and device["kind"] in KINDS and device["vendor"] in VENDORS:
            gpus.append(_gpu(device, report, environ, lookup))
            _count_parts(gpus[-1], parts.get(device["id"], ()), report)
    return sorted(gpus, key=lambda gpu: not gpu.primary)


def _count_parts(gpu: Gpu, parts: Sequence[DeviceDoc], report: ReportDoc) -> None:
    """Have a card that is cut into MIG instances or partitions be what its parts are."""
    for part in parts:
        usable, step = _usable(part)
        if usable or (usable is None and gpu.usable is False):
            gpu.usable, gpu.step = usable, step
        gpu.primary = gpu.primary or part["id"] == report["primary"]


def _gpu(device: DeviceDoc, report: ReportDoc, environ: Mapping[str, str], lookup: _Chips) -> Gpu:
    name = device["name"] or device["chip"].get("name") or device["id"]
    gpu = Gpu(device["id"], device["vendor"] or "", name)
    arch = report["node"]["arch"]
    gpu.os, gpu.arch = report["node"]["os"], ARCHES.get(arch, arch)
    gpu.usable, gpu.step = _usable(device)
    gpu.primary = device["id"] == report["primary"]
    gpu.discrete = device["memory"]["kind"] not in ("shared", "unified")
    if gpu.vendor == "nvidia":
        gpu.capabilities = _capabilities(device, lookup)
        if not set(gpu.capabilities) & TEGRA:
            gpu.driver = _driver(device, gpu.os)
    elif gpu.vendor == "amd":
        gpu.processor = device.get("gfx") or _processor(device, lookup)
        xnack = environ.get("HSA_XNACK")
        gpu.xnack = None if xnack is None else xnack.strip() not in ("", "0")
    else:
        gpu.families = _families(device, lookup)
        gpu.releases = _releases(device, gpu.families, lookup)
    return gpu


def _usable(device: DeviceDoc) -> tuple[bool | None, str | None]:
    """Return whether a build for the vendor's own runtime may use the device, and the step if not.

    An AMD card without KFD is left to Vulkan, for which no framework has a build.
    """
    answer, limit = usable_here(device), step_without_kfd(device)
    if answer.usable is not False and limit is not None:
        return False, limit["step"]
    return answer.usable, answer.step


def _driver(device: DeviceDoc, os: str) -> tuple[int, ...]:
    driver = device["driver"] or {}
    if driver.get("version_of") == "kernel" or not driver.get("name", "nvidia").startswith("nv"):
        return ()
    numbers = version_of(driver.get("version", ""))
    if os == "windows" and len(numbers) == 4:
        # Windows numbers drivers itself: the last five digits of 32.0.15.6094 are 560.94.
        digits = f"{numbers[2]}{numbers[3]:04d}"[-5:]
        return int(digits[:3]), int(digits[3:])
    return numbers if len(numbers) > 1 else ()


def module_driver(machine: Machine) -> tuple[int, ...]:
    """Return the version of NVIDIA's module where no device says it (Tegra has its own numbers)."""
    version = version_of(machine.read("/sys/module/nvidia/version", 64) or "")
    if len(version) > 1:
        return version
    # "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.144.03  Mon Dec 30 …"
    parts = (machine.read("/proc/driver/nvidia/version", 1024) or "").split("  ")
    version = version_of(parts[1].strip()) if len(parts) > 1 else ()
    return version if len(version) > 1 else ()


class _Chips:
    """chipdb, loaded when it is needed: a report with every capability does not."""

    def __init__(self) -> None:
        self._database: Database | None = None

    def of(self, device: DeviceDoc) -> list[Chip]:
        chip = device["chip"]
        ids = [chip["id"]] if chip["id"] else chip["candidates"]
        chips = [self.database.chip(id_) for id_ in ids if id_]
        return [chip for chip in chips if chip is not None]

    @property
    def database(self) -> Database:
        if self._database is None:
            import probe_chipdb

            self._database = probe_chipdb.load(packages=False)
        return self._database

    def column(self, chips: Iterable[Chip], name: str) -> list[list[str]]:
        """Return for each chip the values of a column of its architecture."""
        columns = []
        for chip in chips:
            arch = self.database.arch(chip.arch) if chip.arch else None
            columns.append(arch.column(name).split("|") if arch and arch.column(name) else [])
        return columns


def _capabilities(device: DeviceDoc, lookup: _Chips) -> tuple[tuple[int, int], ...]:
    """Return the compute capability: the driver's word, else that of the chip's architecture."""
    text = device.get("compute_capability")
    texts = [text] if text else []
    if not texts:
        for values in lookup.column(lookup.of(device), "compute_capability"):
            # Thor has two numbers, the newer one first; 3.0 and 5.0 stand for their series.
            texts += values if values[:1] in (["3.0"], ["5.0"]) else values[:1]
    pairs = {version_of(text)[:2] for text in texts}
    return tuple(sorted((pair[0], pair[1]) for pair in pairs if len(pair) == 2))


def _processor(device: DeviceDoc, lookup: _Chips) -> str | None:
    """Return the processor by the die's name, or by an architecture that has one alone."""
    chips = lookup.of(device)
    names = {DRIVERS["gfx"].get(chip.codename or "") for chip in chips if chip.codename}
    if names and None not in names:
        return names.pop() if len(names) == 1 else None
    single = {tuple(values) for values in lookup.column(chips, "gfx")}
    if len(single) == 1:
        (values,) = single
        # gfx940 and gfx941 were never sold: cdna3 is gfx942.
        return "gfx942" if "gfx942" in values else values[0] if len(values) == 1 else None
    return None


def _families(device: DeviceDoc, lookup: _Chips) -> tuple[str, ...]:
    if device["arch"]:
        return (device["arch"],)
    return tuple(sorted({chip.family for chip in lookup.of(device) if chip.family}))


def _releases(device: DeviceDoc, families: Iterable[str], lookup: _Chips) -> tuple[str, ...]:
    """Return the IP versions by the die's name, else by the family; () where one is unknown."""
    if device["vendor"] != "intel":
        return ()
    codenames = {chip.codename or "" for chip in lookup.of(device)}
    known = codenames and all(name in DRIVERS["xe"] for name in codenames)
    lists = [DRIVERS["xe"].get(name) for name in (codenames if known else families)]
    if not all(isinstance(versions, list) for versions in lists):
        return ()
    return tuple(sorted({version for versions in lists for version in versions or ()}))
