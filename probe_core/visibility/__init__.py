"""Which devices a process may use, for each consumer: pure rules over environment and devices.

`see` asks every consumer that the devices concern, `annotate` writes the answers into a report's
devices, `findings` says what a variable hides. Standard library only; a consumer's rules are
imported when a device of its vendor is there.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    from probe_core.visibility.view import View

    Device = Mapping[str, Any]
    Views = dict[str, list[View]]

__all__ = [
    "CONSUMERS",
    "MAIN",
    "annotate",
    "canonical",
    "findings",
    "main_consumer",
    "refresh",
    "see",
    "visible",
]

CONSUMERS = (
    "cuda",
    "rocr",
    "hip",
    "level-zero",
    "sycl",
    "opencl",
    "vulkan",
    "ggml-vulkan",
    "nvidia-container",
    "tinygrad",
    "metal",
)
"""All consumers, in the order in which they are shown."""

ALIASES = {
    "rocm": "hip",
    "ze": "level-zero",
    "l0": "level-zero",
    "levelzero": "level-zero",
    "oneapi": "sycl",
    "cl": "opencl",
    "vk": "vulkan",
    "ggml": "ggml-vulkan",
    "nvidia": "cuda",
    "amd": "hip",
    "container": "nvidia-container",
    "mlx": "metal",
    "mps": "metal",
}
"""Other words for consumers; ``_`` counts as ``-`` too."""

CODES = (
    "hidden-by-variable",
    "variable-stops-at",
    "variable-duplicate",
    "variable-skips",
    "variable-breaks",
    "order-unknown",
)
"""Codes of the findings that come from here."""

MAIN = {"nvidia": "cuda", "amd": "hip", "intel": "level-zero", "apple": "metal"}
"""The consumer that speaks for a vendor's devices; for any other vendor it is vulkan."""


def see(
    devices: Sequence[Device],
    environ: Mapping[str, str],
    *,
    os: str = "linux",
    versions: Mapping[str, str] | None = None,
) -> Views:
    """Return what each consumer would see of a report's devices under `environ`.

    `os` is linux, darwin or windows. `versions` tells versions that change the rules
    (``{"tinygrad": "0.12.0"}``). A consumer that no device concerns is left out. There is more
    than one view of a consumer that numbers each vendor's devices apart (opencl, tinygrad).
    """
    vendors = {device.get("vendor") for device in devices if device.get("kind") == "gpu"}
    if not vendors:
        return {}
    views: Views = {}
    if os == "darwin":
        _see_mac(views, devices)
        return views
    if "nvidia" in vendors:
        from probe_core.visibility import cuda

        views["cuda"] = [cuda.see(devices, environ)]
    if "amd" in vendors:
        _see_amd(views, devices, environ, os)
    if "intel" in vendors:
        from probe_core.visibility import level_zero

        views["level-zero"] = [level_zero.see(devices, environ)]
    _see_across(views, devices, environ, os)
    if "nvidia" in vendors or "amd" in vendors:
        _see_nvidia_and_amd(views, devices, environ, versions or {})
    return views


def _see_mac(views: Views, devices: Sequence[Device]) -> None:
    from probe_core.visibility import metal

    views["metal"] = [metal.see(devices)]


def _see_amd(views: Views, devices: Sequence[Device], environ: Mapping[str, str], os: str) -> None:
    if os == "windows":  # no ROCr there
        from probe_core.visibility import pal

        views["hip"] = [
            pal.see(devices, environ, "hip", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
        ]
        return
    from probe_core.visibility import hip, rocr

    below = rocr.see(devices, environ)
    views["rocr"] = [below]
    views["hip"] = [hip.see(devices, environ, below)]


def _see_across(
    views: Views, devices: Sequence[Device], environ: Mapping[str, str], os: str
) -> None:
    """Add the consumers that serve several vendors."""
    from probe_core.visibility import ggml, vulkan

    if views:
        from probe_core.visibility import opencl, sycl

        first = {name: found[0] for name, found in views.items()}
        backends = [first[name] for name in ("level-zero", "cuda", "hip") if name in first]
        views["sycl"] = [sycl.see(devices, environ, backends)]
        views["opencl"] = opencl.see(devices, environ, first)
    loader = vulkan.see(devices, environ, os)
    if loader.pool:
        views["vulkan"] = [loader]
        views["ggml-vulkan"] = [ggml.see(environ, loader)]


def _see_nvidia_and_amd(
    views: Views,
    devices: Sequence[Device],
    environ: Mapping[str, str],
    versions: Mapping[str, str],
) -> None:
    from probe_core.visibility import tinygrad

    if "cuda" in views:
        from probe_core.visibility import container

        views["nvidia-container"] = [container.see(devices, environ)]
    found = tinygrad.see(devices, environ, versions.get("tinygrad"))
    if found:
        views["tinygrad"] = found


def annotate(devices: Sequence[dict[str, Any]], views: Views) -> None:
    """Write ``visibility`` into each device: consumer → visible, index, reason, variable.

    ``visible`` is null where only the driver knows, ``index`` too where its order is not known;
    ``one_of`` then lists the possible indexes. Hidden devices stay, marked.
    """
    said: dict[str, dict[str, Any]] = {}
    for consumer in CONSUMERS:
        for view in views.get(consumer, ()):
            for name in view.pool:
                said.setdefault(name, {})[consumer] = view.entry(name)
    for device in devices:
        device["visibility"] = said.get(str(device.get("id")), {})


def findings(views: Views) -> list[dict[str, Any]]:
    """Return what a person should know: hidden devices, and values that do not do what they say."""
    if all(_plain(view) for found in views.values() for view in found):
        return []
    from probe_core.visibility.explain import explain

    return explain(views)


def refresh(
    document: dict[str, Any],
    environ: Mapping[str, str],
    *,
    versions: Mapping[str, str] | None = None,
) -> Views:
    """Rewrite a report's visibility for `environ`, and return the views.

    For a report made elsewhere or earlier (a static one): what hid a device then does not count.
    The primary device stays, unless it is hidden now, or was a CPU for want of a visible GPU.
    """
    node = document.get("node")
    os = str((node if isinstance(node, dict) else {}).get("os") or "linux")
    devices = [device for device in document.get("devices") or () if isinstance(device, dict)]
    views = see(devices, environ, os=os, versions=versions)
    hidden = [str(device.get("id")) for device in devices if _hidden(device)]
    annotate(devices, views)
    said = [one for one in document.get("findings") or () if one.get("code") not in CODES]
    document["findings"] = said + findings(views)
    _choose_primary(document, devices, hidden)
    return views


def _hidden(device: Device) -> bool:
    """Return whether a report says that its own runtime does not see the device."""
    said = (device.get("visibility") or {}).get(main_consumer(device)) or {}
    return said.get("visible") is False


def _choose_primary(
    document: dict[str, Any], devices: Sequence[dict[str, Any]], hidden: Collection[str]
) -> None:
    """Choose the primary device anew where it is hidden here, or a better one no longer is.

    `hidden` are the ids of the devices that the environment of the recording hid.
    """
    now = next((one for one in devices if one.get("id") == document.get("primary")), None)
    freed = any(one.get("id") in hidden and not _hidden(one) for one in devices)
    if now is not None and not _hidden(now) and not (freed and now.get("kind") == "cpu"):
        return
    from probe_core.primary import choose

    blank = {"seen_by": ["recorded"], "memory": {"total": None}}
    full = [{**one, **{k: v for k, v in blank.items() if not one.get(k)}} for one in devices]
    chosen = choose(full, {}, ())
    document["primary"] = chosen["id"] if chosen else None


def _plain(view: View) -> bool:
    """Return whether no variable acts on the view, so that there is nothing to explain."""
    return view.variable is None and not view.reasons


def canonical(consumer: str) -> str:
    """Return a consumer's name as reports have it: ``level-zero`` for ``level_zero`` or ``ze``."""
    name = consumer.strip().lower().replace("_", "-")
    return ALIASES.get(name, name)


def main_consumer(device: Device) -> str:
    """Return the consumer by which the device counts as visible: its vendor's own."""
    return MAIN.get(str(device.get("vendor")), "vulkan")


def visible(document: Mapping[str, Any], consumer: str | None = None) -> list[Device]:
    """Return a report's devices that `consumer` surely sees, in its order.

    Without a consumer each device is judged by its vendor's own; devices that no variable can
    hide (a CPU, an NPU) count as visible. Devices without a known index keep the report's order.
    """
    found = []
    wanted = None if consumer is None else canonical(consumer)
    for place, device in enumerate(document.get("devices") or ()):
        said = (device.get("visibility") or {}).get(wanted or main_consumer(device))
        if said is None and consumer is None:
            found.append((place, place, device))
        elif said and said.get("visible"):
            index = said.get("index")
            order = place if consumer is None or index is None else index
            found.append((order, place, device))
    return [device for _, _, device in sorted(found, key=lambda item: item[:2])]
