"""Drivers of NVIDIA, AMD and Intel: what an answer, a suspend or another part of one shows."""

from __future__ import annotations

from probe_core import proc
from probe_core.doctor.causes import concerned, fixed, of_cause
from probe_core.doctor.check import REPORT, check, failed, not_applicable, passed, unknown
from probe_core.doctor.installation import as_root
from probe_core.machine import decimal
from probe_core.model.fix import REBOOT, by_hand
from probe_core.model.rocm import first_numbers, release_of_driver
from probe_core.readiness.nvidia import switches
from probe_core.readiness.rocm import KFD_NODES, kfd_folder
from probe_core.readiness.runtime import HAILO, HAILORT, LEGACY, LEGACY_ICD, ZE_LEGACY
from probe_core.sizes import gib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from probe_core.doctor.check import Request, ResultDoc
    from probe_core.machine import Machine
    from probe_core.model.document import DeviceDoc


# NVIDIA: a slow answer, a suspend, a licence, or the absence of a service.

SUSPENDS = "/sys/power/suspend_stats/success"
TOKENS, SERVER = "/etc/nvidia/ClientConfigToken", "/etc/nvidia/gridd.conf"
_SLOW_MS = 2000
"""Without persistence nvmlInit takes 2 to 30 s on nodes with many GPUs (aks-gpu#105)."""


def _gpus(request: Request) -> list[DeviceDoc]:
    devices = concerned("slow-init", request.report["devices"])
    return [device for device in devices if device["kind"] == "gpu"]


@check("uvm-stale", step="responding", needs=(SUSPENDS, "/proc/driver/nvidia/params"))
def uvm(request: Request) -> ResultDoc:
    """Whether CUDA fails since the machine slept."""
    devices, scene = _gpus(request), request.scene
    if not devices or scene.container is not None:
        return not_applicable("no NVIDIA GPU is here, or the host suspends")
    if not request.machine.read_int(SUSPENDS):
        return passed()  # it did not sleep since it started, or has no such file
    if scene.nvidia_params.get("PreserveVideoMemoryAllocations") == "1":
        return passed()
    answer = request.report.get("asked", {}).get("cuda")
    if answer is None:
        return unknown("the machine slept; only CUDA itself tells (`probe doctor --active`)")
    # CUDA_ERROR_UNKNOWN: ollama's troubleshooting page has it after a suspend.
    if answer.get("code") != "cuda-error-999":
        return passed()
    evidence = f"{SUSPENDS}: {request.machine.read(SUSPENDS, 16)}; cuInit answered 999"
    return failed(of_cause(request, "uvm-stale", evidence, devices))


@check("slow-init", step="responding", needs=(REPORT,))
def initialisation(request: Request) -> ResultDoc:
    """Whether the first query of NVIDIA's driver takes seconds."""
    devices = _gpus(request)
    outcome = next((o for o in request.report["outcomes"] if o["prober"] == "nvidia"), None)
    if not devices or outcome is None or outcome["status"] != "ok":
        return not_applicable("the plugin for NVIDIA did not query a GPU")
    off = [device for device in devices if device.get("persistence") is False]
    if outcome["elapsed_ms"] < _SLOW_MS or not off:
        return passed()
    seconds = outcome["elapsed_ms"] / 1000
    return failed(of_cause(request, "slow-init", f"the query took {seconds:.1f} s", off))


@check("vgpu-unlicensed", step="responding", needs=(TOKENS, SERVER))
def licence(request: Request) -> ResultDoc:
    """Whether a virtual GPU has neither a token nor a licence server."""
    devices = [device for device in _gpus(request) if _is_virtual(device)]
    if not devices:
        return not_applicable("no virtual GPU (vGPU) is here")
    machine = request.machine
    if not machine.exists("/etc/nvidia"):
        return unknown("/etc/nvidia is not there", "nvidia-smi -q | grep -i licen")
    settings = (machine.read(SERVER) or "").splitlines()
    servers = [line for line in settings if line.strip().startswith("ServerAddress=")]
    if any(line.partition("=")[2].strip() for line in servers):
        return passed()
    if any(name.endswith(".tok") for name in machine.listdir(TOKENS)):
        return passed()
    evidence = f"{TOKENS} has no .tok; {SERVER} names no server"
    return failed(of_cause(request, "vgpu-unlicensed", evidence, devices))


def _is_virtual(device: DeviceDoc) -> bool:
    extra = device.get("extra") or {}
    return extra.get("virtualization") == "vgpu"


@check("fabric-not-ready", step="runtime", needs=("/sys/bus/pci/devices", "/proc/*/comm"))
def fabric(request: Request) -> ResultDoc:
    """Whether NVSwitches are here and no fabric manager runs."""
    devices = _gpus(request)
    bridges = switches(request.machine)
    if not devices or not bridges:
        return not_applicable("no NVSwitch is on the bus")
    if any("fabric" in (device.get("extra") or {}) for device in devices):
        return passed()  # NVML answered, and readiness has its answer
    if not request.machine.live or request.scene.container is not None:
        return unknown("whether nvidia-fabricmanager runs is not visible here")
    root = request.machine.root.rstrip("/")
    if "nv-fabricmanage" in (proc.program(pid, root) for pid in proc.processes(root)):
        return passed()
    if proc.program(1, root) is None:  # proc(5), hidepid
        return unknown("/proc hides the processes of other users", as_root("doctor"))
    evidence = f"{bridges[0]} is an NVSwitch; no process nv-fabricmanager"
    return failed(of_cause(request, "fabric-not-ready", evidence, devices))


# ROCm beside the kernel's driver: two releases apart is what AMD tests.

ROCM, DRIVER = "/opt/rocm/.info/version", "/sys/module/amdgpu/version"

_RELEASES = ("5.5", "5.6", "5.7", "6.0", "6.1", "6.2", "6.3", "6.4", "7.0", "7.1", "7.2")
_APART = 2
"""Releases that may lie between them ("User and kernel-space support matrix", ROCm 6.3)."""


@check("rocm-kernel-skew", step="runtime", needs=(ROCM, DRIVER))
def skew(request: Request) -> ResultDoc:
    """Whether ROCm and amdgpu are more than two releases apart."""
    devices = concerned("rocm-kernel-skew", request.report["devices"])
    numbers = first_numbers((request.machine.read(ROCM, 64) or "").partition("-")[0])
    text = request.machine.read(DRIVER, 64)
    if not devices or len(numbers) < 2 or text is None:
        return not_applicable("neither AMD's own kernel driver nor /opt/rocm is here")
    driver, rocm = release_of_driver(text), "{}.{}".format(*numbers)
    if driver is None or rocm not in _RELEASES:
        return unknown(f"which release of ROCm amdgpu {text} belongs to is not known")
    if abs(_RELEASES.index(rocm) - _RELEASES.index(driver)) <= _APART:
        return passed()
    evidence = f"{ROCM}: {rocm}; {DRIVER}: {text}, of ROCm {driver}"
    finding = of_cause(request, "rocm-kernel-skew", evidence, devices)
    text = f"install amdgpu-dkms of ROCm {rocm} (AMD's repository)"
    fixed(finding, (by_hand(text, changes=("package amdgpu-dkms",)), REBOOT), request)
    return failed(finding)


# AMD's graphics of a processor: what of the memory its compute interface offers.

_LEAST_OFFERED = 0.9
"""Share of what firmware set aside that the interface offers at least. A judgement: it is all of it
or, from Linux 6.10 to 6.16.8, what the system may lend instead (ROCm/legacy-rocm-build#5444)."""


@check("apu-memory-unused", step="runtime", needs=(REPORT, KFD_NODES))
def offered(request: Request) -> ResultDoc:
    """Whether ROCm is offered what firmware set aside for a processor's graphics."""
    devices = concerned("apu-memory-unused", request.report["devices"])
    sizes = {device["id"]: _set_aside(device) for device in devices}
    if not any(sizes.values()):
        return not_applicable("no processor's graphics with memory of its own is here")
    found = []
    for device in devices:
        own, banks = sizes[device["id"]], _banks(device, request.machine)
        if own and banks and banks < own * _LEAST_OFFERED:
            evidence = f"mem_banks of the compute interface: {gib(banks)} of {gib(own)}"
            found.append(of_cause(request, "apu-memory-unused", evidence, [device]))
    return failed(*found) if found else passed()


def _set_aside(device: DeviceDoc) -> int | None:
    memory = device["memory"]
    if (device["arch"] or "").startswith("cdna"):  # MI300A: each partition lists its share alone
        return None
    return (memory.get("parts") or {}).get("vram") if memory["kind"] == "unified" else None


def _banks(device: DeviceDoc, machine: Machine) -> int:
    """Return the bytes of a GPU's memory in KFD's topology; 0 where it is not known."""
    node = kfd_folder(device, machine)
    folder = f"{node}/mem_banks"
    names = machine.listdir(folder)[:_MAX_BANKS] if node is not None else []
    texts = (machine.read(f"{folder}/{name}/properties", 4096) or "" for name in names)
    return sum(map(_size_of_bank, texts))


def _size_of_bank(text: str) -> int:
    """Return the bytes of a bank that is the GPU's own; 0 of another one."""
    values = dict(line.split()[:2] for line in text.splitlines() if line.count(" ") == 1)
    is_own = values.get("heap_type") in _OWN_HEAPS
    return (decimal(values.get("size_in_bytes", "")) or 0) if is_own else 0


_MAX_BANKS = 8
_OWN_HEAPS = ("1", "2")
"""Public and private frame buffer (hsakmttypes.h)."""


# Intel's compute runtime: a library that is there, and older than the GPU.

_ZE = "libze_intel_gpu.so.1"

# Architecture to the first build of production quality: 24.48.31907, whose release notes add
# Battlemage and Lunar Lake (jellyfin-packaging#53 quotes them).
_FIRST_BUILD = {"xe2": 31907}


# Build 30872 (24.35) is the last with code for Gen8, Gen9 and Gen11: from then on they are the
# packages' with the suffix legacy1, whose library has another name (LEGACY_PLATFORMS.md;
# compute-runtime#773).
_LAST_BUILD = dict.fromkeys(LEGACY, 30872)


@check("compute-runtime-too-old", step="runtime", needs=(_ZE,))
def runtime(request: Request) -> ResultDoc:
    """Whether the compute runtime is of a build before the GPU's architecture."""
    return _of_build(request, "compute-runtime-too-old", _FIRST_BUILD, is_least=True)


@check("compute-runtime-too-new", step="runtime", needs=(_ZE, LEGACY_ICD))
def legacy_runtime(request: Request) -> ResultDoc:
    """Whether the compute runtime is of a build without code for the GPU's architecture."""
    if request.scene.libraries.find(ZE_LEGACY) or request.machine.exists(LEGACY_ICD):
        return passed()
    return _of_build(request, "compute-runtime-too-new", _LAST_BUILD, is_least=False)


def _of_build(
    request: Request, code: str, builds: Mapping[str, int], *, is_least: bool
) -> ResultDoc:
    """Judge the build of the library by the least or last one for the GPUs' architectures."""
    devices = concerned(code, request.report["devices"])
    devices = [device for device in devices if device["arch"] in builds]
    if not devices:
        return not_applicable("no Intel GPU is here that needs another build")
    paths = request.scene.libraries.find(_ZE)
    if not paths:
        return not_applicable(f"{_ZE} is in no folder of the loader")
    # libze_intel_gpu.so.1.6.31907: the third number is the build's, as in 24.48.31907.
    real = request.machine.realpath(paths[0])
    number = real.rpartition(".so.")[2].split(".")[2:3]
    if not number or not number[0].isdecimal():
        return unknown(f"{real} has no build number")
    build = int(number[0][:9])
    limits = [(device, builds[device["arch"] or ""]) for device in devices]
    other = [(d, limit) for d, limit in limits if (build < limit if is_least else build > limit)]
    if not other:
        return passed()
    limit = other[0][1]
    needed = limit if is_least else f"at most {limit}"
    evidence = f"{paths[0]} leads to build {build}; the GPU needs {needed}"
    return failed(of_cause(request, code, evidence, [device for device, _ in other]))


# Hailo: HailoRT starts with the driver of its own version alone (hailort, hailort_driver.cpp).


@check("hailort-mismatch", step="library", needs=(HAILO,))
def hailort(request: Request) -> ResultDoc:
    """Whether the driver of a Hailo device and HailoRT differ in version."""
    devices = concerned("hailort-mismatch", request.report["devices"])
    driver = request.machine.read(HAILO, 64)
    if not devices or driver is None:
        return not_applicable("no Hailo device is here whose driver tells its version")
    libraries = request.scene.libraries
    names = {name: folder for folder in libraries.folders for name in libraries.names(folder)}
    own = {name.removeprefix(f"{HAILORT}.") for name in names if name.startswith(f"{HAILORT}.")}
    full = [version for version in own if _is_version(version)]
    if not full or not _is_version(driver):
        return unknown(f"no {HAILORT}.VERSION is in the folders of the loader")
    if driver in full:
        return passed()
    name = f"{HAILORT}.{min(full)}"
    evidence = f"{HAILO}: {driver}; the library is {names[name]}/{name}"
    return failed(of_cause(request, "hailort-mismatch", evidence, devices))


def _is_version(text: str) -> bool:
    """Return whether a text has the three numbers that HailoRT compares; a link may have one."""
    return text.count(".") == 2 and text.replace(".", "").isdecimal()


CHECKS = [uvm, initialisation, licence, fabric, skew, runtime, legacy_runtime, hailort, offered]
