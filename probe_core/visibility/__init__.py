"""Which devices a process may use, for each runtime: pure rules over environment and devices.

`see` evaluates every runtime that the devices concern, `annotate` writes the answers into a
report's devices, `findings` says what a variable hides. Standard library only; a runtime's rules
are imported when a device of its vendor is there.
"""

from __future__ import annotations

from probe_core.model.runtimes import RUNTIMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from probe_core.model.document import DeviceDoc, FindingDoc, VisibilityDoc
    from probe_core.visibility.view import View

    Views = dict[str, list[View]]

CODES = (
    "hidden-by-variable",
    "variable-stops-at",
    "variable-duplicate",
    "variable-skips",
    "variable-breaks",
    "order-unknown",
)
"""Codes of the findings that come from here."""


def see(
    devices: Sequence[DeviceDoc],
    environ: Mapping[str, str],
    *,
    os: str = "linux",
    versions: Mapping[str, str] | None = None,
) -> Views:
    """Return what each runtime would show of a report's devices under `environ`.

    `os` is linux, darwin or windows. `versions` are versions that change the rules
    (``{"tinygrad": "0.12.0"}``). A runtime that no device concerns is left out. There is more
    than one view of a runtime that numbers each vendor's devices apart (opencl, sycl, tinygrad).
    """
    vendors = {device["vendor"] for device in devices if device["kind"] == "gpu"}
    if not vendors:
        return {}
    views: Views = {}
    if os == "darwin":
        from probe_core.visibility import metal

        return {"metal": [metal.see(devices)]}
    if "nvidia" in vendors:
        from probe_core.visibility import cuda

        views["cuda"] = [cuda.see(devices, environ)]
    if "amd" in vendors:
        _see_amd(views, devices, environ, os)
    if "intel" in vendors:
        from probe_core.visibility import oneapi

        views["level-zero"] = [oneapi.see_level_zero(devices, environ)]
    _see_across(views, devices, environ, os)
    if "nvidia" in vendors:
        from probe_core.visibility import container

        views["nvidia-container"] = [container.see(devices, environ)]
    if "nvidia" in vendors or "amd" in vendors:
        from probe_core.visibility import tinygrad

        if platforms := tinygrad.see(devices, environ, (versions or {}).get("tinygrad")):
            views["tinygrad"] = platforms
    return views


def _see_amd(
    views: Views, devices: Sequence[DeviceDoc], environ: Mapping[str, str], os: str
) -> None:
    from probe_core.visibility import amd

    if os == "windows":  # HIP stands on PAL there: ROCr needs Linux's KFD
        views["hip"] = [amd.see_pal(devices, environ, "hip", amd.VARIABLES)]
        return
    below = amd.see_rocr(devices, environ)
    views["rocr"] = [below]
    views["hip"] = [amd.see_hip(devices, environ, below)]


def _see_across(
    views: Views, devices: Sequence[DeviceDoc], environ: Mapping[str, str], os: str
) -> None:
    """Add the runtimes that serve several vendors."""
    from probe_core.visibility import vulkan

    if views:
        from probe_core.visibility import opencl

        first = {name: platforms[0] for name, platforms in views.items()}
        backends = [first[name] for name in ("level-zero", "cuda", "hip") if name in first]
        views["sycl"] = [opencl.see_sycl(devices, environ, backend) for backend in backends]
        views["opencl"] = opencl.see(devices, environ, first)
    loader = vulkan.see_vulkan(devices, environ, os)
    if loader.pool:
        views["vulkan"] = [loader]
        views["ggml-vulkan"] = [vulkan.see_ggml(environ, loader)]


def parts(vendors: Collection[str | None], environ: Mapping[str, str]) -> list[str]:
    """Return the parts of `gate` with the rules of these vendors, and of variables that are set."""
    from probe_core.visibility import opencl, tinygrad, vulkan

    of_variables = {
        "intel": (opencl.DEVICE_SELECTOR,),  # SYCL's, which selects devices of all vendors
        "vulkan drivers": vulkan.OF_DRIVERS,
        "tinygrad's DEV": (tinygrad.DEV,),
    }
    read = [part for part, names in of_variables.items() if any(n in environ for n in names)]
    return [*(name for name in ("nvidia", "amd", "intel") if name in vendors), *read]


def load_rules(vendors: Collection[str], os: str) -> None:
    """Import the rules by which `see` judges GPUs of these vendors."""
    if os == "darwin":
        from probe_core.visibility import metal  # noqa: F401

        return
    from probe_core.visibility import opencl, vulkan  # noqa: F401

    if "intel" in vendors:
        from probe_core.visibility import oneapi  # noqa: F401
    if "nvidia" in vendors:
        from probe_core.visibility import container, cuda  # noqa: F401
    if "amd" in vendors:
        from probe_core.visibility import amd  # noqa: F401
    if "nvidia" in vendors or "amd" in vendors:
        from probe_core.visibility import tinygrad  # noqa: F401


def annotate(devices: Sequence[DeviceDoc], views: Views) -> None:
    """Write ``visibility`` into each device: runtime → visible, index, reason, variable.

    ``visible`` is null where only the driver knows, ``index`` too where its order is not known;
    ``one_of`` then lists the possible indexes, and ``settled_by`` names the variable that would
    settle it. Hidden devices stay, marked.
    """
    entries: dict[str, dict[str, VisibilityDoc]] = {}
    for runtime in RUNTIMES:
        for view in views.get(runtime, ()):
            for name, entry in view.entries().items():
                entries.setdefault(name, {})[runtime] = entry
    for device in devices:
        device["visibility"] = entries.get(device["id"], {})


def findings(views: Views) -> list[FindingDoc]:
    """Return what a person should know: hidden devices, and values that do not do what they say."""
    if is_plain(views):
        return []
    from probe_core.visibility.explain import explain

    return explain(views)


def is_plain(views: Views) -> bool:
    """Return whether no variable acts on any view, so that there is nothing to explain."""
    every = (view for platforms in views.values() for view in platforms)
    return all(view.variable is None and not view.reasons for view in every)
