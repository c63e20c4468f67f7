"""The state of a computer while its devices work, to say later what has changed since.

Kept in the user's state folder, one file a computer: facts with their values, and which devices
were ready. Only what is on this list is compared; nothing of it leaves the computer.
"""

from __future__ import annotations

import os

from probe_core.config import BASELINE, place_of_state, state_base, state_file
from probe_core.doctor.causes import fixed, shown
from probe_core.doctor.log import first_sign
from probe_core.jsontext import parse, write
from probe_core.machine import read_regular, text_of
from probe_core.machine.writing import make_own_folder, replace_file
from probe_core.model.causes import CAUSES
from probe_core.model.findings import finding
from probe_core.model.ids import ACCELERATORS, driver_text
from probe_core.model.runtimes import RUNTIMES
from probe_core.model.verdict import grantable, state_of
from probe_core.pipeline.expected import is_container_without_id, is_of, keys_of, saved_devices
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from probe_core.doctor.check import Request
    from probe_core.doctor.document import BaselineDoc, ChangeDoc, DoctorDoc, ShownFindingDoc
    from probe_core.model.document import DeviceDoc, Json

SCHEMA = 1
FILE_LIMIT = 1 << 20
_MAX_VALUE = 300

# Modules whose coming or going changes what a GPU can do.
_MODULES = (
    "nvidia nvidia_uvm nvidia_drm nvidia_modeset nvidia_peermem nouveau nova_core amdgpu radeon"
    " i915 xe intel_vpu amdxdna habanalabs vfio_pci rknpu panthor panfrost"
).split()


def facts(request: Request) -> dict[str, str | None]:
    """Return the facts that are compared, by a name for people."""
    return {name: value[:_MAX_VALUE] if value else None for name, value in _facts(request)}


def _facts(request: Request) -> Iterator[tuple[str, str | None]]:
    machine, scene, node = request.machine, request.scene, request.report["node"]
    yield "kernel", node["kernel"]
    yield "kernel command line", " ".join(scene.modules.command_line) if scene.linux else None
    yield "firmware", machine.read("/sys/class/dmi/id/bios_version", 256)
    yield "container", scene.container
    yield "memory limit (cgroup)", _text(node["memory"].get("limit"))
    yield "control group", _cgroup(scene.cgroup)
    yield "groups of this process", " ".join(map(str, sorted(scene.process.groups)))
    for name in _MODULES if scene.linux else ():
        loaded = scene.modules.is_loaded(name)
        yield f"module {name}", "loaded" if loaded else None
        yield f"version of module {name}", machine.read(f"/sys/module/{name}/version", 64)
    for variable in sorted({name for entry in RUNTIMES.values() for name in entry.variables}):
        yield f"variable {variable}", machine.environ.get(variable)
    for device in request.report["devices"]:
        if device["kind"] in ACCELERATORS:
            yield from _of_device(device)
    yield from _libraries(request)
    yield from request.facts.items()


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _cgroup(text: str) -> str | None:
    """Return who made the group; its path has ids of jobs, which change each time."""
    from probe_core.machine.surroundings import cgroup_kind

    return cgroup_kind(text)


def _of_device(device: DeviceDoc) -> Iterator[tuple[str, str | None]]:
    name = f"{device['name'] or device['vendor']} ({device['id']})"
    yield f"driver of {name}", driver_text(device) or ""
    # The BIOS carve-out of an integrated GPU is its VRAM.
    parts = device["memory"].get("parts") or {}
    yield f"VRAM of {name}", _text(parts.get("vram") or device["memory"]["total"])
    link = next((link for link in device["links"] if link["kind"] == "pcie"), None)
    if link is not None:
        yield f"PCIe lanes of {name}", _text(link.get("local_width"))


def _libraries(request: Request) -> Iterator[tuple[str, str | None]]:
    """Yield where the drivers' libraries lead, whose names have their versions."""
    if not request.scene.linux:
        return
    for name in ("libcuda.so.1", "libnvidia-ml.so.1", "libze_intel_gpu.so.1"):
        paths = request.scene.libraries.find(name)
        yield f"library {name}", request.machine.realpath(paths[0]) if paths else None
    yield "ROCm", request.machine.read("/opt/rocm/.info/version", 64)


def save(request: Request, document: DoctorDoc) -> str:
    """Keep the state of this computer, and return the file's path.

    Raises `OSError`, and `ValueError` where the environment names no place.
    """
    environ = request.machine.environ
    path = place_of_state(environ, BASELINE)
    make_own_folder(os.path.dirname(path), state_base(environ)[0])
    from time import gmtime, strftime

    content = {
        "schema": SCHEMA,
        "saved": strftime("%Y-%m-%dT%H:%M:%SZ", gmtime()),
        "keys": keys_of(request.machine, request.report["node"], request.report["devices"]),
        "accelerators": saved_devices(request.report["devices"]),
        "ready": sorted(_ready(request, document)),
        "facts": {n: v for n, v in facts(request).items() if n not in request.facts},
        "of_checks": request.facts,
    }
    replace_file(path, f"{write(content)}\n".encode(), mode=0o600)
    return path


def _ready(request: Request, document: DoctorDoc) -> set[str]:
    """Return the ids of the accelerators that a job can surely be given.

    A variable of this process takes none of them away; what only the doctor's checks found does.
    """
    devices = [d for d in request.report["devices"] if d["kind"] in ACCELERATORS]
    found = {d["id"] for d in document["devices"] if d["readiness"]["state"] == "blocked"}
    ready = {device["id"] for device in devices if grantable(device).usable}
    own = {device["id"] for device in devices if state_of(device) == "blocked"}
    return ready - (found - own)


def compare(request: Request, document: DoctorDoc) -> None:
    """Add to the document what differs from the baseline, where there is one.

    Devices that were ready then and are not now are `lost`, and with one nothing is healthy; what
    no bus shows any more has a finding.
    """
    path = state_file(request.machine.environ, BASELINE)
    baseline = _read(path) if path is not None else None
    if path is None or baseline is None:
        return
    node = request.report["node"]
    if not is_of(baseline, request.machine, node, request.report["devices"]):
        document["findings"].append(_foreign(path, is_container_without_id(node)))
        return
    ready = _ready(request, document)
    before = _texts(baseline.get("facts"))
    now, own = facts(request), _texts(baseline.get("of_checks"))
    # Facts of checks that ran at one of both times alone (`--env`) are no changes.
    if own and request.facts:
        before |= own
    else:
        now = {name: value for name, value in now.items() if name not in request.facts}
    was_ready = baseline.get("ready")
    kept = map(str, was_ready) if isinstance(was_ready, list) else ()
    asked = [name for name in kept if request.device in (None, name)]
    lost = [name for name in asked if name not in ready]
    result: BaselineDoc = {
        "saved": clean_text(str(baseline.get("saved")), 40),
        "lost": [clean_text(name, 200) for name in lost[:256]],
        "changed": list(_changes(before, now)) if lost else [],
    }
    document["baseline"] = result
    if lost:
        document["healthy"] = False
        present = {device["id"] for device in request.report["devices"]}
        named = {entry["device"] for entry in document["findings"] if entry["step"] == "hardware"}
        gone = [name for name in result["lost"] if name not in present | named]
        document["findings"][:0] = [_gone(name, result["saved"], request) for name in gone]


def _foreign(path: str, in_container: bool) -> ShownFindingDoc:
    """Return the notice about a baseline of another computer, as in a home that several share."""
    whose, why = "it is another computer's", "its id of the node is another"
    fix = "keep one for each: `XDG_STATE_HOME=… probe doctor --save`"
    if in_container:
        whose = "it is of another computer, or of an earlier boot"
        why = "a container shows no id of the node; the kernel's boot and all GPUs are others"
        fix = "mount the host's /etc/machine-id into the container, then `probe doctor --save`"
    return shown(
        finding(
            "baseline-of-another-computer",
            f"{clean_text(path, 200)} is not compared: {whose}",
            why,
            fix,
            severity="info",
        )
    )


def _gone(device: str, saved: str, request: Request) -> ShownFindingDoc:
    """Return the finding about a device that was ready, and that nothing shows now."""
    cause = CAUSES["off-the-bus"]
    result = shown(
        finding(
            cause.code,
            f"{device} is lost: no bus and no plugin shows it now",
            f"it was ready on {saved[:10]}",
            cause.fix,
            severity="error",
            device=device,
            step=cause.step,
            evidence=first_sign(request, device.removeprefix("pci:"), None)
            or f"the baseline of {saved}",
        )
    )
    fixed(result, cause.parts, request)
    return result


def _changes(
    before: Mapping[str, str | None], now: Mapping[str, str | None]
) -> Iterator[ChangeDoc]:
    for name in dict.fromkeys((*before, *now)):
        old, new = before.get(name), now.get(name)
        if old != new:
            yield {"fact": name, "before": old, "now": new}


def _read(path: str) -> dict[str, Json] | None:
    """Return the baseline; None where there is none, or it is no baseline of this schema."""
    try:
        document = parse(text_of(read_regular(path, FILE_LIMIT)))
    except (OSError, ValueError, RecursionError):
        return None
    is_baseline = isinstance(document, dict) and document.get("schema") == SCHEMA
    return document if is_baseline else None


def _texts(value: object) -> dict[str, str | None]:
    """Return a table of texts, clean: whoever can write the file could write anything."""
    table = value.items() if isinstance(value, dict) else ()
    return {
        clean_text(str(name), 200): clean_text(text, _MAX_VALUE) if isinstance(text, str) else None
        for name, text in table
    }
