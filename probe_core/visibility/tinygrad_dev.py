"""What tinygrad makes of DEV: targets with indices since 0.13, a device's name in 0.11 and 0.12.

Sources: tinygrad at v0.11.0 to v0.13.0 and 0.14.0: helpers.py (`Target.parse`,
`_DEV`), device.py (`DEFAULT`), runtime/support/hcq.py (`_select_iface`), runtime/ops_nv.py and
ops_amd.py (`ifaces`, renderers).
"""

from __future__ import annotations

from probe_core.visibility.tinygrad import DEV_SINCE
from probe_core.visibility.view import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


_NAMES_SINCE, _CL_SINCE = (0, 11), (0, 12)

_INTERFACES = {"NV": ("NVK", "PCI", "MOCK"), "AMD": ("KFD", "PCI", "USB")}
_MOCK = "MOCK"
_OF_THE_DRIVER = ("", "NVK", "KFD")
"""Interfaces that number what the kernel driver lists."""

# By the classes' names, with and without the device's (`_renderer_name`). One that fits the device
# is chosen when the first kernel is compiled; the device is open by then.
_RENDERERS = {
    "NV": ("CUDA", "PTX", "CC", "NVCC", "NAK"),
    "AMD": ("HIP", "LLVM", "AMDLLVM", "HIPCC"),
}

# The modules runtime/ops_*.py.
_DEVICES = "AMD CPU CUDA DISK DSP HIP METAL NPY NULL NV PYTHON QCOM WEBGPU".split()
_ONLY_IN_0_11 = ("GPU", "LLVM", "REMOTE")
_SINCE_0_12 = ("CL", "TINYFS")
_SINCE_0_13 = ("RDMA",)


class Dev:
    """What DEV means to one backend.

    `indices`: the list for it, "" for all. `fault`: why tinygrad raises when the backend is used.
    `doubt`: why only some programs get its devices.
    """

    __slots__ = ("doubt", "fault", "indices")

    def __init__(
        self, indices: str = "", fault: str | None = None, doubt: str | None = None
    ) -> None:
        self.indices = indices
        self.fault = fault
        self.doubt = doubt


class _Target:
    """One target of DEV: ``interface:indices+device:renderer:arch``."""

    __slots__ = ("device", "indices", "interface", "renderer")

    def __init__(self, text: str) -> None:
        front, plus, back = text.rpartition("+")
        self.interface, colon, self.indices = front.rpartition(":")
        if plus and not colon:
            self.interface, self.indices = front, ""
        names = [*back.split(":"), ""]
        self.device, self.renderer = names[0].upper(), names[1].upper()


def dev_of(value: str, backend: str, release: Sequence[int]) -> Dev:
    """Return what ``DEV=value`` means to `backend` (NV or AMD) of a tinygrad of this release."""
    if not value or tuple(release) < _NAMES_SINCE:
        return Dev()
    if tuple(release) < DEV_SINCE:
        return Dev(doubt=_no_device(value, value.upper(), release))
    for text in value.split(";"):
        if text.count("+") > 1 or text.rpartition("+")[2].count(":") > 2:
            return Dev(fault=f"DEV={quoted(value)} has a target that tinygrad cannot parse")
    targets = [_Target(text) for text in value.split(";")]
    own = next((target for target in targets if target.device in ("", backend)), None)
    dev = Dev() if own is None else _own(value, own, backend)
    if dev.fault is None and targets[0].device:
        dev.doubt = dev.doubt or _no_device(value, targets[0].device, release)
    return dev


def _own(value: str, target: _Target, backend: str) -> Dev:
    interface = target.interface
    simulated = interface.startswith(_MOCK)
    if interface and interface not in _INTERFACES[backend] and not simulated:
        return Dev(fault=f"DEV={quoted(value)}: {backend} has no interface {quoted(interface)}")
    if target.renderer and target.renderer not in _RENDERERS[backend]:
        return Dev(
            fault=f"DEV={quoted(value)}: {backend} has no renderer {quoted(target.renderer)}"
        )
    if interface not in _OF_THE_DRIVER:
        return Dev(
            doubt=f"DEV={quoted(value)} passes the kernel driver by: what it lists is unknown"
        )
    return Dev(target.indices)


def _no_device(value: str, name: str, release: Sequence[int]) -> str | None:
    """Return why tinygrad's default device raises; None when there is such a device."""
    device, colon, number = name.partition(":")
    known = {*_DEVICES, *(_SINCE_0_12 if tuple(release) >= _CL_SINCE else _ONLY_IN_0_11)}
    if tuple(release) >= DEV_SINCE:
        known.update(_SINCE_0_13)
    if device in known and (not colon or (number.isascii() and number.isdigit())):
        return None
    return f"DEV={quoted(value)} names no device, so tinygrad raises where none is named in code"
