"""How devices are named to a program: by UUID, or by number where it cannot read UUIDs.

UUIDs mean the same whatever else is set. Numbers are right only together with an order, and are
for the programs that turn each entry of CUDA_VISIBLE_DEVICES into an integer.
"""

from __future__ import annotations

from probe_core.selection.for_tinygrad import tinygrad_changes
from probe_core.visibility import see
from probe_core.visibility.availability import available_to
from probe_core.visibility.oneapi import AFFINITY_MASK as ZE_MASK
from probe_core.visibility.pool import gpus_of, ids_of, in_order, uuids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

    from probe_core.model.document import DeviceDoc, ReportDoc
    from probe_core.visibility import Views

    Changes = dict[str, str | None]


AUTO, UUID, INDEX = "auto", "uuid", "index"

NUMBERS_ONLY = {
    # program or top-level module: where it was seen
    "vllm": "vllm-project/vllm issues 13815, 20939 and 41848",
    "deepspeed": "deepspeedai/DeepSpeed issue 5278",
    "openrlhf": "OpenRLHF/OpenRLHF issue 402",
    # Its AMD part refuses ROCR_VISIBLE_DEVICES, which style "index" does without.
    "ray": "ray-project/ray issue 53737",
}
"""Programs that take numbers alone: int() of each entry, or a check that only numbers pass."""


def style_for(style: str, command: Sequence[str]) -> str:
    """Return the style to use, ``uuid`` or ``index``: as asked for, else as the command needs.

    A program counts wherever it stands among the words: behind `uv run`, `python -m` or a path.
    """
    if style != AUTO:
        return style
    return INDEX if any(_program(argument) in NUMBERS_ONLY for argument in command) else UUID


def _program(argument: str) -> str:
    """Return what a word would run: the file without its folder, or the module's first name."""
    return argument.rpartition("/")[2].partition(".")[0].lower()


# The variables that confine a process to some devices, for every runtime, never widening.
#
# UUIDs are used where a runtime knows them, since they mean the same whatever else is set; else,
# and for programs that cannot read them, numbers in an order that does not depend on speed. What
# was set before is replaced, because the devices given were chosen among those that it left.

_NO_DEVICE = "-1"
"""A number that no device has: where an empty value would mean "all" (ZE_AFFINITY_MASK)."""


def confine(
    document: ReportDoc,
    devices: Sequence[DeviceDoc],
    environ: Mapping[str, str],
    *,
    versions: Mapping[str, str] | None = None,
    style: str = UUID,
    command: Sequence[str] = (),
) -> Changes:
    """Return what to set (or, for None, to unset) so that a process sees `devices` alone.

    `document` is the node's report; the numbers count all its devices, since they are resolved
    before any mask. Every vendor's other devices are hidden, and a device that `environ` hides
    from one runtime stays hidden from it, whichever runtime's numbers it was chosen by. The
    order of `devices` is kept where the runtime keeps orders. Variables of vendors that are not
    on the node are left alone. `versions` is as for `probe_core.visibility.see`. `style` is
    ``uuid``, ``index``, or ``auto``: what the program in `command` can read.
    """
    installed = [device for device in document["devices"] if device["kind"] != "cpu"]
    vendors = {device["vendor"] for device in installed if device["kind"] == "gpu"}
    system = document["node"]["os"] or "linux"
    views = see(installed, environ, os=system, versions=versions)
    changes: Changes = {}
    by_number = style_for(style, command) == INDEX
    if "nvidia" in vendors:
        changes |= _nvidia(installed, _shown(devices, views, "cuda"), by_number)
    if "amd" in vendors:
        above = by_number and "ROCR_VISIBLE_DEVICES" not in environ
        changes |= (_amd_by_hip if above else _amd)(installed, devices, views)
        if "nvidia" not in vendors and "CUDA_VISIBLE_DEVICES" in environ:
            # HIP reads it where its own variable is unset (clr, rocdevice.cpp): a command that
            # unsets HIP_VISIBLE_DEVICES would count by the old numbers.
            changes["CUDA_VISIBLE_DEVICES"] = changes["HIP_VISIBLE_DEVICES"]
    if "intel" in vendors:
        changes |= _intel(installed, devices, environ)
    if vendors:
        allowed = _shown(devices, views, "tinygrad")
        changes |= tinygrad_changes(installed, allowed, environ, (versions or {}).get("tinygrad"))
        if environ.get("ONEAPI_DEVICE_SELECTOR"):
            from probe_core.selection.for_sycl import selector_changes

            changes |= selector_changes(installed, environ, _with(environ, changes))
        allowed = _shown(devices, views, "ggml-vulkan")
        changes |= _ggml(installed, allowed, _with(environ, changes), system)
    return changes


def _shown(devices: Sequence[DeviceDoc], views: Views, runtime: str) -> list[DeviceDoc]:
    """Return those of `devices` that the runtime surely shows now; all where none concerns it."""
    if runtime not in views:
        return list(devices)
    # Only surely: what may be hidden stays hidden, since nothing here may widen.
    ids = {name for view in views[runtime] for name in view.visible}
    return [device for device in devices if device["id"] in ids]


def _with(environ: Mapping[str, str], changes: Changes) -> dict[str, str]:
    return {**environ, **{name: value for name, value in changes.items() if value is not None}}


def _of(vendor: str, devices: Sequence[DeviceDoc]) -> list[DeviceDoc]:
    return [device for device in devices if device["vendor"] == vendor]


def _places(ids: Container[str], ranked: Sequence[DeviceDoc]) -> str:
    """Return the numbers of the devices with these ids, as what counts `ranked` has them."""
    return ",".join(str(place) for place, device in enumerate(ranked) if device["id"] in ids)


def _numbers(devices: Sequence[DeviceDoc], ranked: Sequence[str]) -> str:
    """Return the numbers of `devices`, in their order, among the ids of a runtime's devices."""
    return ",".join(str(ranked.index(device["id"])) for device in devices if device["id"] in ranked)


def _nvidia(
    installed: Sequence[DeviceDoc], devices: Sequence[DeviceDoc], by_number: bool
) -> Changes:
    own = _of("nvidia", devices)
    names = [name for name in map(_cuda_name, own) if name is not None]
    numbers = _numbers(own, ids_of(in_order(gpus_of(_numbered(installed, "cuda"), "nvidia"))))
    by_uuid = ",".join(names) if len(names) == len(own) else numbers
    return {
        # The default, by speed, would make numbers depend on what else is visible.
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": numbers if by_number and _countable(installed, own) else by_uuid,
        # Empty would leave a container as runc makes it; "none" gives it the driver and no GPU.
        "NVIDIA_VISIBLE_DEVICES": by_uuid or "none",
    }


def _countable(installed: Sequence[DeviceDoc], devices: Sequence[DeviceDoc]) -> bool:
    """Return whether CUDA's numbers surely mean these devices: never MIG instances.

    A number of a GPU in MIG mode stands for its first instance, whichever was meant.
    """
    sure = len(available_to(installed, "cuda").alternatives()) == 1
    return sure and not any(device["parent"] for device in devices)


def _numbered(installed: Sequence[DeviceDoc], runtime: str) -> Sequence[DeviceDoc]:
    """Return the devices that a runtime surely numbers before any variable acts."""
    return available_to(installed, runtime).alternatives()[0]


def _cuda_name(device: DeviceDoc) -> str | None:
    return next((uuid for uuid in uuids(device) if uuid.startswith(("GPU-", "MIG-"))), None)


def _amd(installed: Sequence[DeviceDoc], devices: Sequence[DeviceDoc], views: Views) -> Changes:
    from probe_core.visibility.amd import agents, amd_uuid

    own = _of("amd", _shown(devices, views, "rocr"))
    ranked = agents(_numbered(installed, "rocr"), installed)
    installed_uuids = [amd_uuid(gpu) for gpu in ranked]
    names = [amd_uuid(device) for device in own]
    # Partitions of one card share its unique id: then only numbers tell them apart.
    unique = all(name is not None and installed_uuids.count(name) == 1 for name in names)
    listed = ",".join(name or "" for name in names) if unique else _numbers(own, ids_of(ranked))
    return {
        "ROCR_VISIBLE_DEVICES": listed,
        # These count what ROCr leaves.
        "HIP_VISIBLE_DEVICES": _places(ids_of(_shown(own, views, "hip")), own),
        "GPU_DEVICE_ORDINAL": _places(ids_of(_shown(own, views, "opencl")), own),
    }


def _amd_by_hip(
    installed: Sequence[DeviceDoc], devices: Sequence[DeviceDoc], views: Views
) -> Changes:
    """Return what confines HIP alone, by numbers, with ROCr left open.

    Ray refuses to start where ROCR_VISIBLE_DEVICES is set (ray-project/ray pull 51104), and takes
    the numbers of HIP_VISIBLE_DEVICES for those of all devices.
    """
    from probe_core.visibility.amd import agents

    own = _of("amd", _shown(devices, views, "rocr"))
    ranked = ids_of(agents(_numbered(installed, "rocr"), installed))
    return {
        "HIP_VISIBLE_DEVICES": _numbers(_shown(own, views, "hip"), ranked),
        "GPU_DEVICE_ORDINAL": _numbers(_shown(own, views, "opencl"), ranked),
    }


def _intel(
    installed: Sequence[DeviceDoc], devices: Sequence[DeviceDoc], environ: Mapping[str, str]
) -> Changes:
    from probe_core.visibility.oneapi import mask_of

    return {ZE_MASK: mask_of(installed, environ, ids_of(_of("intel", devices))) or _NO_DEVICE}


def _ggml(
    installed: Sequence[DeviceDoc],
    devices: Sequence[DeviceDoc],
    environ: Mapping[str, str],
    system: str,
) -> Changes:
    from probe_core.visibility import vulkan

    loader = vulkan.see_vulkan(installed, environ, system)
    if not loader.pool or not loader.certain:
        return {}
    return {"GGML_VK_VISIBLE_DEVICES": _numbers(devices, loader.masks[0].ids)}


# An environment's changes as lines for a POSIX shell.

_PLAIN = "@%+=:,./-_"


def lines(changes: Mapping[str, str | None]) -> Iterator[str]:
    """Yield ``export NAME=value`` and ``unset NAME``, fit for ``eval``, sorted by name."""
    for name, value in sorted(changes.items()):
        yield f"unset {name}" if value is None else f"export {name}={_quoted(value)}"


def _quoted(value: str) -> str:
    if value and all(char.isascii() and (char.isalnum() or char in _PLAIN) for char in value):
        return value
    return "'" + value.replace("'", "'\"'\"'") + "'"
