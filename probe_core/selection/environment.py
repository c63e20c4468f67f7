"""The variables that confine a program to devices: UUIDs, or numbers where it cannot read UUIDs."""

from __future__ import annotations

from probe_core.model.ids import ACCELERATORS, is_device_id
from probe_core.visibility import see
from probe_core.visibility.availability import available_to, gpus_of, ids_of, in_order, uuids
from probe_core.visibility.opencl import AFFINITY_MASK, DEVICE_SELECTOR
from probe_core.visibility.tinygrad import DEV_SINCE, HCQ, HCQ_SINCE, numbered, release_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

    from probe_core.model.document import DeviceDoc, ReportDoc
    from probe_core.visibility import Views
    from probe_core.visibility.oneapi import Selector

    Changes = dict[str, str | None]


# Renews ONEAPI_DEVICE_SELECTOR for a confined process: its numbers count what the masks leave.

_BACKENDS = {"level_zero": "level-zero", "cuda": "cuda", "hip": "hip"}
_BY_KIND = ("opencl", "native_cpu", "offload")
_NO_DEVICE = "99"
"""A number that no device has. An empty list of devices does not parse (device_filter.cpp)."""


def selector_changes(
    installed: Sequence[DeviceDoc], before: Mapping[str, str], after: Mapping[str, str]
) -> dict[str, str | None]:
    """Return the selector that shows, under the masks of `after`, no more than it showed `before`.

    One without numbers says the same as before and stays; so does one that SYCL cannot parse.
    """
    from probe_core.visibility.oneapi import parse_selector

    selectors, fault = parse_selector(before.get(DEVICE_SELECTOR, ""))
    if fault is not None or all(selector.number is None for selector in selectors):
        return {}
    shown_before = see(installed, before)
    masks = {name: value for name, value in after.items() if name != DEVICE_SELECTOR}
    shown_after = see(installed, masks)
    terms = []
    for backend, runtime in _BACKENDS.items():
        own = [selector for selector in selectors if selector.backend in ("*", backend)]
        if runtime in shown_after and any(not selector.discards for selector in own):
            ranked = shown_after[runtime][0].visible
            accepted = _accepted(own, backend, shown_before[runtime][0].visible)
            listed = [f"{ranked.index(name)}{sub}" for name, sub in accepted if name in ranked]
            terms.append(f"{backend}:{','.join(listed) or _NO_DEVICE}")
    terms += _through_opencl(selectors)
    return {DEVICE_SELECTOR: ";".join(terms or [f"level_zero:{_NO_DEVICE}"])}


def _through_opencl(selectors: Sequence[Selector]) -> list[str]:
    """Return the terms of the backends that no list of ours numbers, as kinds of devices alone.

    Intel's OpenCL driver obeys ZE_AFFINITY_MASK as Level Zero does (compute-runtime, shared
    `DeviceFactory::prepareDeviceEnvironments`), so that a kind shows what the masks leave. A number
    counts the devices of all platforms, which the masks shift: it would mean another device, and
    is left out. The devices of a filter that discards by number are not known either.
    """
    terms: list[str] = []
    discarding: list[str] = []
    for backend in _BY_KIND:
        own = [selector for selector in selectors if _concerns(selector, backend)]
        kinds = [s.kind for s in own if not s.discards and s.kind is not None]
        if kinds and not any(s.discards and s.number is not None for s in own):
            terms.append(f"{backend}:{','.join(dict.fromkeys(kinds))}")
            discards = [s.kind for s in own if s.discards and s.kind is not None]
            discarding += [f"!{backend}:{kind}" for kind in dict.fromkeys(discards)]
    return terms + discarding


def _concerns(selector: Selector, backend: str) -> bool:
    # Only a filter that names them reaches the rarer backends: "*" is for what is installed.
    return selector.backend == backend or (selector.backend == "*" and backend == "opencl")


def _accepted(
    selectors: Sequence[Selector], backend: str, ranked: Sequence[str]
) -> list[tuple[str, str]]:
    """Return the backend's devices that the filters took, each with its sub-device (``.1``)."""
    accepted = []
    for number, name in enumerate(ranked):
        fits = [selector for selector in selectors if selector.fits(backend, number)]
        if not any(selector.discards for selector in fits):
            subs = dict.fromkeys("" if fit.sub is None else f".{fit.sub}" for fit in fits)
            accepted += [(name, sub) for sub in ([""] if "" in subs else subs)]
    return accepted


# The variables that confine tinygrad, which changed their names three times.
#
# Sources: tinygrad at tags v0.9.2 to v0.13.0, runtime/ops_nv.py, ops_amd.py, support/hcq.py,
# support/system.py, device.py and helpers.py (`Target.parse`).


def versions() -> dict[str, str]:
    """Return the version of the tinygrad that this interpreter would import; empty without one.

    Read from the names of the folders on the path: nothing is imported.
    """
    import sys

    from probe_core.selection.interpreter import installed

    return installed(("tinygrad",), [folder or "." for folder in sys.path])


def tinygrad_changes(
    installed: Sequence[DeviceDoc],
    devices: Sequence[DeviceDoc],
    environ: Mapping[str, str],
    version: str | None = None,
) -> Changes:
    """Return what makes tinygrad show `devices` alone, of all devices of the node (`installed`).

    Up to 0.11 it reads VISIBLE_DEVICES, before the vendors' variables: needed, for it takes no
    UUIDs from CUDA_VISIBLE_DEVICES and does not count what ROCr left. It has one list for NV and
    AMD, so it is set only where one of them is on the node. 0.12 reads HCQ_VISIBLE_DEVICES, which
    later ones refuse; since 0.13 indices stand in DEV, which 0.11 and 0.12 take for a backend's
    name. Where no version is known the newest counts.
    """
    ranked = {name: ids_of(gpus) for name, gpus in numbered(installed).items() if gpus}
    numbers = {backend: _numbers(ids, devices) for backend, ids in ranked.items()}
    listed = ",".join(next(iter(numbers.values()))) if len(numbers) == 1 else ""
    release = release_of(version)
    changes: Changes = {}
    if listed and HCQ_SINCE <= release < DEV_SINCE:
        changes[HCQ] = listed
    if listed and (version is None or release < HCQ_SINCE):
        changes["VISIBLE_DEVICES"] = listed
    dev = environ.get("DEV", "")
    if ranked and release >= DEV_SINCE and (not dev or _names_a_backend(dev)):
        # No index means all: one behind the last is refused, so that it stands for none.
        indices = {name: own or [str(len(ranked[name]))] for name, own in numbers.items()}
        changes["DEV"] = _merged(dev, indices) if dev else _new(indices, numbers)
    return changes


def _numbers(ranked: Sequence[str], devices: Sequence[DeviceDoc]) -> list[str]:
    return [str(ranked.index(device["id"])) for device in devices if device["id"] in ranked]


def _names_a_backend(dev: str) -> bool:
    names = [target.rpartition("+")[2].split(":")[0].upper() for target in dev.split(";")]
    return any(name in ("NV", "AMD") for name in names)


def _new(indices: Mapping[str, Sequence[str]], numbers: Mapping[str, Sequence[str]]) -> str:
    """Return DEV where it was not set: the first target is also the backend that is used."""
    if not any(numbers.values()):
        return f":{max(int(index) for own in indices.values() for index in own)}+"
    ordered = sorted(indices, key=lambda backend: not numbers[backend])
    return ";".join(f":{','.join(indices[backend])}+{backend}" for backend in ordered)


def _merged(dev: str, indices: Mapping[str, Sequence[str]]) -> str:
    """Return DEV with the indices put into the targets that it names, in its own order."""
    targets = []
    for target in dev.split(";"):
        front, _, renderer = target.rpartition("+")
        own = indices.get(renderer.split(":")[0].upper())
        interface = front.rpartition(":")[0] if ":" in front else front
        targets.append(target if own is None else f"{interface}:{','.join(own)}+{renderer}")
    return ";".join(targets)


# How devices are named to a program: by UUID, or by number where it cannot read UUIDs.
#
# UUIDs mean the same whatever else is set. Numbers are right only together with an order, and are
# for the programs that turn each entry of CUDA_VISIBLE_DEVICES into an integer.

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

_ENVIRONMENT_NO_DEVICE = "-1"
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
            changes |= selector_changes(installed, environ, _with(environ, changes))
        allowed = _shown(devices, views, "ggml-vulkan")
        changes |= _ggml(installed, allowed, _with(environ, changes), system)
    return changes


def unconfined(document: ReportDoc, devices: Sequence[DeviceDoc]) -> list[DeviceDoc]:
    """Return those of `devices` beside which a program sees others of the node, whatever is set.

    No runtime of ours numbers them (a Gaudi, a TPU), so that no variable is known.
    """
    ids = ids_of(devices)
    others = [own for own in document["devices"] if own["id"] not in ids and not own["visibility"]]
    kinds = {(own["vendor"], own["kind"]) for own in others if own["kind"] in ACCELERATORS}
    free = [device for device in devices if not device["visibility"]]
    return [device for device in free if (device["vendor"], device["kind"]) in kinds]


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


def _environment_numbers(devices: Sequence[DeviceDoc], ranked: Sequence[str]) -> str:
    """Return the numbers of `devices`, in their order, among the ids of a runtime's devices."""
    return ",".join(_numbers(ranked, devices))


def _nvidia(
    installed: Sequence[DeviceDoc], devices: Sequence[DeviceDoc], by_number: bool
) -> Changes:
    own = _of("nvidia", devices)
    names = [name for name in map(_cuda_name, own) if name is not None]
    numbers = _environment_numbers(
        own, ids_of(in_order(gpus_of(_numbered(installed, "cuda"), "nvidia")))
    )
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
    names = (uuid for uuid in uuids(device) if uuid.startswith(("GPU-", "MIG-")))
    # One with a comma would be two: a list of UUIDs has no quotes.
    return next((name for name in names if is_device_id(f"uuid:{name}")), None)


def _amd(installed: Sequence[DeviceDoc], devices: Sequence[DeviceDoc], views: Views) -> Changes:
    from probe_core.visibility.amd import agents, amd_uuid

    own = _of("amd", _shown(devices, views, "rocr"))
    ranked = agents(_numbered(installed, "rocr"), installed)
    installed_uuids = [amd_uuid(gpu) for gpu in ranked]
    names = [amd_uuid(device) for device in own]
    # Partitions of one card share its unique id: then only numbers tell them apart.
    unique = all(
        name is not None and is_device_id(f"uuid:{name}") and installed_uuids.count(name) == 1
        for name in names
    )
    listed = (
        ",".join(name or "" for name in names)
        if unique
        else _environment_numbers(own, ids_of(ranked))
    )
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
        "HIP_VISIBLE_DEVICES": _environment_numbers(_shown(own, views, "hip"), ranked),
        "GPU_DEVICE_ORDINAL": _environment_numbers(_shown(own, views, "opencl"), ranked),
    }


def _intel(
    installed: Sequence[DeviceDoc], devices: Sequence[DeviceDoc], environ: Mapping[str, str]
) -> Changes:
    from probe_core.visibility.oneapi import mask_of

    return {
        AFFINITY_MASK: mask_of(installed, environ, ids_of(_of("intel", devices)))
        or _ENVIRONMENT_NO_DEVICE
    }


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
    return {"GGML_VK_VISIBLE_DEVICES": _environment_numbers(devices, loader.masks[0].ids)}


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
