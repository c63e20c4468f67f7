"""Systems beside a Linux of its own: macOS, Windows, and the Linux in Windows."""

from __future__ import annotations

from probe_core.doctor.causes import fixed, of_cause
from probe_core.doctor.check import REPORT, check, failed, not_applicable, passed, unknown
from probe_core.machine.engines import option
from probe_core.model.ids import ACCELERATORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_core.doctor.check import Request, ResultDoc
    from probe_core.machine import Machine
    from probe_core.model.document import DeviceDoc


# macOS: a virtual machine without a GPU, and a limit on what the GPU may use of the memory.

_GUEST, _LIMIT = "kern.hv_vmm_present", "iogpu.wired_limit_mb"
_SYSCTLS = "/recorded/sysctl.txt"
"""Lines "NAME: VALUE" of a recorded Mac, as the plugin for Apple reads them."""

_SHARE = 0.6
"""Less of the memory than macOS gives without a limit, which is two thirds to three quarters."""


def _sysctl(machine: Machine, name: str) -> int | None:
    """Return a number of sysctl(3) by name."""
    if not machine.live:
        lines = (machine.read(_SYSCTLS) or "").splitlines()
        values = {key.strip(): value.strip() for key, _, value in (x.partition(":") for x in lines)}
        text = values.get(name, "")
        return int(text) if text.isdecimal() and len(text) < 20 else None
    from probe_core.probers.cpu_other import sysctl_int

    return sysctl_int(name)


@check("mac-guest", step="hardware", needs=(_GUEST,))
def guest(request: Request) -> ResultDoc:
    """Whether this macOS is a virtual machine, which has no GPU of its own."""
    present = _sysctl(request.machine, _GUEST)
    if present is None:
        return unknown(f"sysctl {_GUEST} cannot be read")
    if present != 1:
        return passed()
    return failed(of_cause(request, "mac-guest", f"sysctl {_GUEST}: 1"))


@check("wired-limit", step="responding", needs=(_LIMIT, "hw.memsize"))
def wired(request: Request) -> ResultDoc:
    """Whether a limit leaves GPU programs less memory than macOS would."""
    limit = _sysctl(request.machine, _LIMIT)
    total = request.report["node"]["memory"]["total"] or _sysctl(request.machine, "hw.memsize")
    gpus = [device for device in request.report["devices"] if device["kind"] == "gpu"]
    if not gpus:
        return not_applicable("no GPU is here")
    if limit is None or not total:
        return unknown(f"sysctl {_LIMIT} cannot be read")
    if limit == 0 or limit << 20 >= total * _SHARE:
        return passed()
    evidence = f"sysctl {_LIMIT}: {limit} of {total >> 20} MiB"
    return failed(of_cause(request, "wired-limit", evidence, gpus))


# A virtual machine whose processor has less than the real one.
#
# QEMU's own types and Proxmox VE's default, x86-64-v2-AES, have no AVX; every processor for servers
# since 2011 has it. Programs whose code for GPUs is built with it run on the processor instead, or
# not at all (ollama#8606, #2187).


@check("guest-without-avx", step="hardware", needs=(REPORT,))
def processor(request: Request) -> ResultDoc:
    """Whether a virtual machine with an accelerator has a processor without AVX."""
    devices = request.report["devices"]
    if not any(device["kind"] in ACCELERATORS for device in devices):
        return not_applicable("no accelerator is here")
    processors = [device for device in devices if device["kind"] == "cpu"]
    flags = {flag for device in processors for flag in _flags(device)}
    if not {"sse2", "hypervisor"} <= flags or request.scene.wsl:
        return not_applicable("this is no virtual machine of x86-64 that a person sets up")
    if "avx" in flags or any(_has_none(device["name"] or "") for device in processors):
        return passed()
    return failed(of_cause(request, "guest-without-avx", "/proc/cpuinfo: hypervisor, and no avx"))


_WITHOUT = ("Atom", "Celeron", "Pentium")
"""Products that have no AVX themselves until 2020: the host's processor is shown already."""


def _has_none(name: str) -> bool:
    return any(word in name for word in _WITHOUT)


def _flags(device: DeviceDoc) -> list[str]:
    flags = (device.get("cpu") or {}).get("flags")
    return [str(flag) for flag in flags] if isinstance(flags, list) else []


# Windows: what only its event log has.
#
# The log is read through an interface of the system alone (wevtapi, PowerShell), and no program is
# started to look: on Windows itself the command is named. Its output, kept in a recorded machine's
# /recorded/events.txt, is judged.

_EVENTS = "/recorded/events.txt"

# Event 153 is the disk driver's, too ("the IO operation was retried"): the provider tells.
_FILTER = "*[System[EventID=4101 or (Provider[@Name='nvlddmkm'] and EventID=153)]]"
_COMMAND = (
    f'Get-WinEvent -LogName System -MaxEvents 9 -FilterXPath "{_FILTER}"'
    " | Format-List TimeCreated, ProviderName, Id"
)
_RESETS = {("display", "4101"), ("nvlddmkm", "153")}
_SEVERAL = 2
"""One reset in the whole log may be a program's, or an update of the driver. A judgement."""


@check("tdr", step="responding", needs=("the event log", _EVENTS))
def resets(request: Request) -> ResultDoc:
    """Whether Windows had to reset the display driver."""
    gpus = [device for device in request.report["devices"] if device["kind"] == "gpu"]
    if request.machine.os != "windows" or not gpus:
        return not_applicable("this is not Windows with a GPU")
    if request.machine.live:
        return unknown("only the event log has it, and no program is started to read it", _COMMAND)
    text = request.machine.read(_EVENTS)
    if text is None:
        return unknown(
            f"the recording has no event log; {_EVENTS} may hold what the command prints"
        )
    times = [event.get("timecreated", "") for event in _events(text) if _is_reset(event)]
    if len(times) < _SEVERAL:
        return passed()
    evidence = f"{len(times)} resets in the event log, the last {times[0][:40]}"
    finding = of_cause(request, "tdr", evidence, gpus)
    finding["severity"] = "warning"
    return failed(finding)


def _events(text: str) -> Iterator[dict[str, str]]:
    """Yield the blocks of "Name : value" that Format-List prints, the latest first."""
    event: dict[str, str] = {}
    for line in [*text.splitlines(), ""]:
        name, colon, value = line.partition(":")
        if colon:
            event[name.strip().lower()] = value.strip()
        elif event:
            yield event
            event = {}


def _is_reset(event: dict[str, str]) -> bool:
    return (event.get("providername", "").lower(), event.get("id", "")) in _RESETS


# WSL: the library that Windows gives, and a Linux driver that comes before it.

_WINDOWS = "/usr/lib/wsl/"
"""What Windows gives to WSL: its libraries, and the drivers that they are of."""

FOLDER, _LIBRARY, _NODE = "/usr/lib/wsl/lib", "libcuda.so.1", "/dev/dxg"

DRIVERS = "/usr/lib/wsl/drivers"
"""The drivers of Windows, one folder each: NVIDIA's are nv_dispi.inf_amd64_… and the like."""


@check("wsl-no-library", step="library", needs=(FOLDER, DRIVERS, _NODE, _LIBRARY))
def library(request: Request) -> ResultDoc:
    """Whether WSL passes a GPU in and has no CUDA library of the Windows driver."""
    machine = request.machine
    if not request.scene.wsl or not machine.exists(_NODE):
        return not_applicable("this is not WSL with a GPU")
    if machine.exists(f"{FOLDER}/{_LIBRARY}"):
        return passed()
    if request.scene.container is not None:
        return _contained(request)
    # Windows gives WSL the libraries of its GPUs' vendors: nvidia-smi comes with NVIDIA's alone.
    names = machine.listdir(FOLDER)
    has_driver = any(name.startswith("nv") for name in machine.listdir(DRIVERS))
    if names and not has_driver and not any("nvidia" in n or "cuda" in n for n in names):
        return not_applicable("no NVIDIA driver is in Windows, as its other libraries show")
    evidence = f"{_NODE} is there, {FOLDER}/{_LIBRARY} is not"
    return failed(of_cause(request, "wsl-no-library", evidence))


def _contained(request: Request) -> ResultDoc:
    """Judge a container, which is given the library in the folder of Windows's driver.

    nvidia-container-toolkit mounts it as libcuda.so.1.1, and has the loader look there (its CDI
    specification for WSL: nvidia-container-toolkit#1739).
    """
    machine = request.machine
    drivers = [name for name in machine.listdir(DRIVERS) if name.startswith("nv")]
    given = any(machine.exists(f"{DRIVERS}/{name}/{_LIBRARY}.1") for name in drivers)
    if given or request.scene.libraries.find(_LIBRARY):
        return passed()
    if not drivers and "NVIDIA_VISIBLE_DEVICES" not in machine.environ:
        return not_applicable("nothing shows that this container was to have an NVIDIA GPU")
    evidence = f"{_NODE} is there, and no {_LIBRARY}"
    finding = of_cause(request, "wsl-no-library", evidence)
    engine = request.scene.container or ""
    fixed(finding, f"start the container anew with {option('nvidia', engine)}", request)
    return failed(finding)


@check("wsl-linux-driver", step="library", needs=(FOLDER, _LIBRARY))
def linux_driver(request: Request) -> ResultDoc:
    """Whether a Linux driver inside WSL comes before the library of Windows."""
    if not request.scene.wsl:
        return not_applicable("this is not WSL")
    paths = request.scene.libraries.find(_LIBRARY)
    real = request.machine.realpath(paths[0]) if paths else ""
    if not paths or paths[0].startswith(_WINDOWS) or real.startswith(_WINDOWS):
        return passed()
    if not real.rpartition(".so.")[2].count("."):
        return passed()  # a link to Windows's own, or a name without a driver's version
    evidence = f"the loader takes {paths[0]}, which leads to {real}"
    finding = of_cause(request, "wsl-linux-driver", evidence)
    finding["severity"] = "error"
    return failed(finding)


CHECKS = [processor, guest, wired, resets, library, linux_driver]
