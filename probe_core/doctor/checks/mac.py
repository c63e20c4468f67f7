"""macOS: a virtual machine without a GPU, and a limit on what the GPU may use of the memory."""

from __future__ import annotations

from probe_core.doctor.causes import of_cause
from probe_core.doctor.check import check, failed, not_applicable, passed, unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.doctor.check import Request, ResultDoc
    from probe_core.machine import Machine

_GUEST, _LIMIT = "kern.hv_vmm_present", "iogpu.wired_limit_mb"
_RECORDED = "/recorded/sysctl.txt"
"""Lines "NAME: VALUE" of a recorded Mac, as the plugin for Apple reads them."""

_SHARE = 0.6
"""Less of the memory than macOS gives without a limit, which is two thirds to three quarters."""


def _sysctl(machine: Machine, name: str) -> int | None:
    """Return a number of sysctl(3) by name; starting the command would take longer."""
    if not machine.live:
        lines = (machine.read(_RECORDED) or "").splitlines()
        values = {key.strip(): value.strip() for key, _, value in (x.partition(":") for x in lines)}
        text = values.get(name, "")
        return int(text) if text.isdecimal() and len(text) < 20 else None
    try:
        import ctypes

        buffer, size = ctypes.create_string_buffer(8), ctypes.c_size_t(8)
        call = ctypes.CDLL(None).sysctlbyname
        if call(name.encode(), buffer, ctypes.byref(size), None, 0):
            return None
        return int.from_bytes(buffer.raw[: size.value], "little")
    except (ImportError, OSError, AttributeError):
        return None


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


CHECKS = [guest, wired]
