"""What SYCL (DPC++) shows: ONEAPI_DEVICE_SELECTOR over what each backend's own rules left.

Sources: intel/llvm, sycl/doc/EnvironmentVariables.md, sycl/source/detail/device_filter.cpp
(`Parse_ONEAPI_DEVICE_SELECTOR`) and platform_impl.cpp (`filterDeviceFilter`).
"""

from __future__ import annotations

from probe_core.visibility.numbers import strtol
from probe_core.visibility.view import Mask, View, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.model.document import DeviceDoc

__all__ = ["VARIABLE", "Selector", "parse_selector", "see", "sycl_visible"]

VARIABLE = "ONEAPI_DEVICE_SELECTOR"
_BACKENDS = ("opencl", "level_zero", "cuda", "hip", "native_cpu", "offload", "*")
_KINDS = ("cpu", "gpu", "fpga", "acc", "*")
_INT_MAX = (1 << 31) - 1


class Selector:
    """One filter: backend, kind of device or its number, a sub-device, and whether it discards."""

    __slots__ = ("backend", "discards", "kind", "number", "sub")

    def __init__(
        self, backend: str, kind: str | None, number: int | None, sub: str | None, discards: bool
    ) -> None:
        self.backend = backend
        self.kind = kind
        self.number = number
        self.sub = sub
        self.discards = discards

    def fits(self, backend: str, number: int) -> bool:
        """Return whether the filter names the GPU with this number under this backend."""
        if self.backend not in ("*", backend):
            return False
        if self.number is not None:
            return self.number == number
        return self.fits_gpus()

    def fits_gpus(self) -> bool:
        """Return whether the filter names GPUs by their kind."""
        return self.kind in ("gpu", "*")


def see(devices: Sequence[DeviceDoc], environ: Mapping[str, str], backends: Sequence[View]) -> View:
    """Return what SYCL would show; `backends` are the views of level-zero, cuda and hip."""
    value = environ.get(VARIABLE)
    by_id = {device["id"]: device for device in devices}
    pool = [name for view in backends for name in view.pool]
    masks = [sycl_visible(value, ids, by_id) for ids in _combinations(backends)]
    variable = VARIABLE if value else None
    sycl = View("sycl", pool, masks, variable=variable, value=value)
    sycl.complete = all(view.complete for view in backends)
    unsure = next((view for view in backends if not view.certain), None)
    if unsure is not None:
        sycl.uncertain, sycl.settled_by = unsure.uncertain, unsure.settled_by
    for view in backends:
        sycl.withhold_as(view)
        _add_hidden(sycl, view)
        if not value and len(backends) == 1:
            sycl.variable, sycl.value = view.variable, view.value
    return sycl


def _add_hidden(sycl: View, backend: View) -> None:
    possible = backend.possible
    for name in backend.pool:
        if name not in possible:
            entry = backend.entry(name)
            sycl.reasons[name] = (entry["reason"] or "", entry.get("variable"))


def _combinations(backends: Sequence[View]) -> list[dict[str, list[str]]]:
    """Return each combination of the backends' possible results, by the names SYCL gives them."""
    combinations: list[dict[str, list[str]]] = [{}]
    for view in backends:
        name = view.runtime.replace("-", "_")
        combinations = [ids | {name: mask.ids} for ids in combinations for mask in view.masks]
    return combinations


def sycl_visible(
    value: str | None, backends: Mapping[str, Sequence[str]], devices: Mapping[str, DeviceDoc]
) -> Mask:
    """Return what ``ONEAPI_DEVICE_SELECTOR=value`` leaves of each backend's devices (ids in order).

    Unset or empty takes all. A device is taken when an accepting filter names it and no
    discarding one (``!``) does; discarding filters alone start from everything. Each backend
    numbers its devices from 0, and the order stays the backend's. A value that cannot be parsed
    makes SYCL throw: nothing is shown.
    """
    if not value:
        return Mask([name for ids in backends.values() for name in ids])
    selectors, fault = parse_selector(value)
    assignment = f"{VARIABLE}={quoted(value)}"
    if fault is not None:
        return Mask.broken(f"{assignment}: {fault}, and SYCL refuses to start")
    accepted = [
        name
        for backend, ids in backends.items()
        for number, name in enumerate(ids)
        if _accepts(selectors, backend, number, devices.get(name))
    ]
    mask = Mask(accepted, f"{assignment} does not take it")
    if _reaches_opencl(selectors):
        doubt = f"{assignment} takes it through OpenCL, if Intel's OpenCL driver is installed"
        names = (name for name in backends.get("level_zero", ()) if name not in accepted)
        mask.maybe = dict.fromkeys(names, doubt)
    return mask


def _reaches_opencl(selectors: Sequence[Selector]) -> bool:
    """Return whether a GPU may be taken through OpenCL: Intel's, for SYCL bans the other vendors'.

    Its numbers count the devices of all OpenCL platforms, CPUs and FPGA emulators among them, so
    that which GPU one means is not known here (platform_impl.cpp, `IsBannedPlatform`,
    `filterDeviceFilter`).
    """
    own = [selector for selector in selectors if selector.backend in ("*", "opencl")]
    gpus = [selector for selector in own if selector.number is not None or selector.fits_gpus()]
    if any(selector.discards and selector.number is None for selector in gpus):
        return False
    return any(not selector.discards for selector in gpus)


def _accepts(
    selectors: Sequence[Selector], backend: str, number: int, device: DeviceDoc | None
) -> bool:
    fits = [selector for selector in selectors if selector.fits(backend, number)]
    if any(selector.discards for selector in fits):
        return False
    return any(selector.sub is None or _has_sub(selector.sub, device) for selector in fits)


def _has_sub(sub: str, device: DeviceDoc | None) -> bool:
    from probe_core.visibility.level_zero import tiles

    count = 1 if device is None else tiles(device)
    if count < 2:  # not partitionable: SYCL says so and leaves it out
        return False
    if sub.startswith("*"):
        return True
    number, _ = strtol(sub, 10)
    return number is not None and 0 <= number < count


def parse_selector(value: str) -> tuple[list[Selector], str | None]:
    """Return the filters of a selector, or no filter and what is wrong with it."""
    selectors: list[Selector] = []
    for entry in _pieces(value.lower(), ";"):
        # `Parse_ONEAPI_DEVICE_SELECTOR` looks for a backend's name anywhere in the text before
        # the colon, so that "xcuda:0" is CUDA's.
        prefix, *targets = _pieces(entry, ":") or [""]
        discards = prefix.startswith("!")
        backend = next((name for name in _BACKENDS if name in prefix), None)
        if backend is None:
            return [], f"{quoted(entry)} names no backend"
        if len(targets) != 1:
            return [], f"{quoted(entry)} is not backend:devices"
        if not discards and any(selector.discards for selector in selectors):
            return [], f"{quoted(entry)} takes devices after a filter that discards some"
        for text in _pieces(targets[0], ","):
            selector, fault = _device(backend, text, discards)
            if selector is None:
                return [], fault
            selectors.append(selector)
    if selectors and all(selector.discards for selector in selectors):
        selectors.append(Selector("*", "*", None, None, False))
    return selectors, None


def _pieces(text: str, mark: str) -> list[str]:
    return [piece for piece in text.split(mark) if piece]


def _device(backend: str, text: str, discards: bool) -> tuple[Selector | None, str | None]:
    parts = _pieces(text, ".")
    if not parts or len(parts) > 3:
        return None, f"{quoted(text)} is no device"
    kind = next((name for name in _KINDS if name in parts[0]), None)
    number = None
    if kind is None:
        number, _ = strtol(parts[0], 10)
        if number is None or not -_INT_MAX - 1 <= number <= _INT_MAX:
            return None, f"{quoted(parts[0])} is no device number"
    sub = parts[1] if len(parts) > 1 else None
    if sub is not None and (fault := _sub_fault(kind, sub)) is not None:
        return None, fault
    return Selector(backend, kind, number, sub, discards), None


def _sub_fault(kind: str | None, sub: str) -> str | None:
    if kind not in (None, "*"):
        return f"sub-devices of a kind ({kind}) cannot be asked for"
    if sub.startswith("*"):
        return None
    if kind == "*":
        return "a numbered sub-device needs a numbered device"
    return None if strtol(sub, 10)[0] is not None else f"{quoted(sub)} is no sub-device number"
