"""The state of a computer while its devices work, to say later what has changed since.

Kept in the user's state folder, one file a computer: facts with their values, and which devices
were ready. Only what is on this list is compared; nothing of it leaves the computer.
"""

from __future__ import annotations

import os

from probe_core.jsontext import parse, write
from probe_core.machine.files import read_regular, replace_file, text_of
from probe_core.model.kinds import ACCELERATORS
from probe_core.model.readiness import RUNTIMES
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from probe_core.doctor.check import Request
    from probe_core.doctor.document import BaselineDoc, ChangeDoc, DoctorDoc
    from probe_core.model.document import DeviceDoc, Json

__all__ = ["compare", "facts", "save", "state_file"]

SCHEMA = 1
FILE_LIMIT = 1 << 20
_READY = ("ready", "limited")
_MAX_VALUE = 300
_FOLDER = "probe-core"

# Modules whose coming or going changes what a GPU can do.
_MODULES = (
    "nvidia nvidia_uvm nvidia_drm nvidia_modeset nvidia_peermem nouveau nova_core amdgpu radeon"
    " i915 xe intel_vpu amdxdna habanalabs vfio_pci rknpu panthor panfrost"
).split()


def state_file(environ: Mapping[str, str]) -> str:
    """Return where the baseline is kept: below XDG_STATE_HOME, else the system's own place."""
    base = environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):
        local = environ.get("LOCALAPPDATA", "")
        home = os.path.expanduser("~")
        base = local if os.path.isabs(local) else os.path.join(home, ".local", "state")
    return os.path.join(base, _FOLDER, "doctor-baseline.json")


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
    driver = device["driver"] or {}
    yield f"driver of {name}", f"{driver.get('name') or ''} {driver.get('version') or ''}".strip()
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
    """Keep the state of this computer, and return the file's path; raises `OSError`."""
    path = state_file(request.machine.environ)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    from time import gmtime, strftime

    ready = [d["id"] for d in document["devices"] if d["readiness"]["state"] in _READY]
    content = {
        "schema": SCHEMA,
        "saved": strftime("%Y-%m-%dT%H:%M:%SZ", gmtime()),
        "ready": ready,
        "facts": {n: v for n, v in facts(request).items() if n not in request.facts},
        "of_checks": request.facts,
    }
    replace_file(path, f"{write(content)}\n".encode(), mode=0o600)
    return path


def compare(request: Request, document: DoctorDoc) -> None:
    """Add to the document what differs from the baseline, where there is one.

    Devices that were ready then and are not now are `lost`.
    """
    baseline = _read(state_file(request.machine.environ))
    if baseline is None:
        return
    ready = {d["id"] for d in document["devices"] if d["readiness"]["state"] in _READY}
    before = _texts(baseline.get("facts"))
    now, own = facts(request), _texts(baseline.get("of_checks"))
    # Facts of checks that ran at one of both times alone (`--env`) are no changes.
    if own and request.facts:
        before |= own
    else:
        now = {name: value for name, value in now.items() if name not in request.facts}
    was_ready = baseline.get("ready")
    lost = [name for name in was_ready if name not in ready] if isinstance(was_ready, list) else []
    result: BaselineDoc = {
        "saved": clean_text(str(baseline.get("saved")), 40),
        "lost": [clean_text(str(name), 200) for name in lost[:256]],
        "changed": list(_changes(before, now)) if lost else [],
    }
    document["baseline"] = result


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
