"""NVIDIA's driver: what only a slow answer, a suspend or a service's absence shows."""

from __future__ import annotations

from probe_core import proc
from probe_core.doctor.causes import concerned, of_cause
from probe_core.doctor.check import REPORT, check, failed, not_applicable, passed, unknown
from probe_core.doctor.checks.root import as_root
from probe_core.readiness.nvidia import switches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.doctor.check import Request, ResultDoc
    from probe_core.model.document import DeviceDoc

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


CHECKS = [uvm, initialisation, licence, fabric]
