"""The child of `--require-working`: opens the devices that its environment shows, by one framework.

Run as a script by the command's own Python, of whatever version; it imports nothing of ours.
Arguments: framework or ``runtime``, how many devices there must be, the vendors. Ends with 0 when
all of them were opened, else with 1 and one marked line that says why.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ctypes
    from collections.abc import Iterable, Sequence
    from typing import Any

MARK = "probe-trial:"


def main(how: str, count: int, vendors: Sequence[str]) -> str:
    """Open the devices; return why that failed, or an empty text."""
    if how == "runtime":
        return first_fault([RUNTIMES[vendor](count) for vendor in vendors if vendor in RUNTIMES])
    return FRAMEWORKS[how](count)


def first_fault(faults: Iterable[str]) -> str:
    """Return the first that is not empty."""
    return next((fault for fault in faults if fault), "")


def by_torch(count: int) -> str:
    """Put a number on each device that torch counts."""
    import torch  # type: ignore[import-not-found]

    for name in ("cuda", "xpu", "mps"):
        backend = getattr(torch, name, None) or getattr(torch.backends, name, None)
        if backend is not None and backend.is_available():
            break
    else:
        built = getattr(torch.version, "cuda", None) or getattr(torch.version, "hip", None)
        reason = "no device is available to it" if built else "it is built for the CPU alone"
        return "torch " + str(torch.__version__) + ": " + reason
    present = backend.device_count() if hasattr(backend, "device_count") else 1
    for index in range(min(present, count)):
        if float(torch.ones(1, device=name + ":" + str(index)).sum()) != 1.0:
            return "torch " + str(torch.__version__) + ": " + name + " computes wrong results"
    return fewer("torch", int(present), count)


def by_jax(count: int) -> str:
    """Put a number on each accelerator of jax."""
    import jax  # type: ignore[import-not-found]

    devices = [device for device in jax.devices() if device.platform != "cpu"]
    if not devices:
        return "jax " + str(jax.__version__) + ": it sees the CPU alone"
    for device in devices[:count]:
        jax.device_put(1.0, device).block_until_ready()
    return fewer("jax", len(devices), count)


def by_tinygrad(count: int) -> str:
    """Compute on the device that tinygrad would take."""
    from tinygrad import Device, Tensor  # type: ignore[attr-defined]

    name = Device.DEFAULT
    if name.split(":")[0] in ("CPU", "CLANG", "LLVM", "PYTHON", "NULL"):
        return "tinygrad: it would compute on " + name
    for index in range(count):
        if (Tensor([1.0], device=name + ":" + str(index)) + 1).tolist() != [2.0]:
            return "tinygrad: " + name + " computes wrong results"
    return ""


def fewer(framework: str, present: int, count: int) -> str:
    """Return the fault of a framework that sees too few devices."""
    if present >= count:
        return ""
    return framework + ": it sees " + str(present) + " of " + str(count) + " devices"


def by_cuda(count: int) -> str:
    """Make a context on each device of CUDA's driver library (cuda.h)."""
    import ctypes

    cuda = library("libcuda.so.1")
    call(cuda, "cuInit", 0)
    number = ctypes.c_int()
    call(cuda, "cuDeviceGetCount", ctypes.byref(number))
    for index in range(min(number.value, count)):
        device, context = ctypes.c_int(), ctypes.c_void_p()
        call(cuda, "cuDeviceGet", ctypes.byref(device), index)
        call(cuda, "cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        call(cuda, "cuDevicePrimaryCtxRelease_v2", device)
    return fewer("CUDA", number.value, count)


def by_hip(count: int) -> str:
    """Allocate a page on each device of HIP (hip_runtime_api.h)."""
    import ctypes

    hip = library("libamdhip64.so", "libamdhip64.so.6", "libamdhip64.so.7", "libamdhip64.so.5")
    number = ctypes.c_int()
    call(hip, "hipGetDeviceCount", ctypes.byref(number))
    for index in range(min(number.value, count)):
        page = ctypes.c_void_p()
        call(hip, "hipSetDevice", index)
        call(hip, "hipMalloc", ctypes.byref(page), ctypes.c_size_t(4096))
        call(hip, "hipFree", page)
    return fewer("HIP", number.value, count)


def by_level_zero(count: int) -> str:
    """Count the devices of Level Zero's first driver (ze_api.h)."""
    import ctypes

    ze = library("libze_loader.so.1")
    call(ze, "zeInit", 0)
    drivers = ctypes.c_uint32(1)
    driver = ctypes.c_void_p()
    call(ze, "zeDriverGet", ctypes.byref(drivers), ctypes.byref(driver))
    number = ctypes.c_uint32()
    call(ze, "zeDeviceGet", driver, ctypes.byref(number), None)
    return fewer("Level Zero", number.value, count)


def library(*names: str) -> ctypes.CDLL:
    """Return the first library that loads."""
    import ctypes

    fault = ""
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            fault = fault or str(error)
    raise RuntimeError(fault)


def call(loaded: ctypes.CDLL, name: str, *arguments: Any) -> None:
    """Call a function of a library; raise with its status unless that is 0."""
    status = getattr(loaded, name)(*arguments)
    if status:
        raise RuntimeError(name + " gave " + str(status))


FRAMEWORKS = {"torch": by_torch, "jax": by_jax, "tinygrad": by_tinygrad}
RUNTIMES = {"nvidia": by_cuda, "amd": by_hip, "intel": by_level_zero}

if __name__ == "__main__":
    try:
        problem = main(sys.argv[1], int(sys.argv[2]), sys.argv[3].split(","))
    except BaseException as error:
        problem = type(error).__name__ + ": " + " ".join(str(error).split())
    if problem:
        sys.stdout.write("\n" + MARK + " " + problem[:500] + "\n")
    sys.stdout.flush()
    sys.exit(1 if problem else 0)
