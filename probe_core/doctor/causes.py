"""The findings about broken steps: each cause with its evidence and its exact fix.

They are made of the steps that the report has. A prober's own finding about the same break gives
its reason and, where the core has no exact command, its fix.
"""

from __future__ import annotations

from probe_core.doctor.check import REPORT, not_applicable, passed, unknown
from probe_core.doctor.log import explained, is_of_kernel
from probe_core.model.causes import CAUSES
from probe_core.model.findings import CODES, finding
from probe_core.model.fix import parts_of
from probe_core.model.ids import ACCELERATORS
from probe_core.readiness.actions import parts_of_text
from probe_core.readiness.chain import broken
from probe_core.readiness.findings import Usable, finding_of, severity_of
from probe_core.readiness.fixes import action_for, fix_for, fix_of_machine, meaning_of
from probe_core.readiness.library import NIXOS_VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from probe_core.doctor.check import Check, Request, ResultDoc
    from probe_core.doctor.document import ActionDoc, CheckFindingDoc, ShownFindingDoc
    from probe_core.model.causes import Cause
    from probe_core.model.document import DeviceDoc, FindingDoc, StepDoc
    from probe_core.model.fix import Fix
    from probe_core.readiness.actions import Action

    Group = list[tuple[DeviceDoc, StepDoc]]


_NAMES = frozenset({"nouveau", "nova", "radeon", "amdgpu", "macOS", "libcuda", "nvidia", "xe"})
"""Names that a sentence may begin with, and that are written in lower case."""

_BY_VISIBILITY = "visible"
"""The step whose findings visibility makes, one for each variable."""


class Broken:
    """The findings of broken steps, and the report's own findings that they stand for."""

    def __init__(self) -> None:
        self.findings: list[ShownFindingDoc] = []
        self.reported: list[FindingDoc] = []


def broken_findings(request: Request) -> Broken:
    """Return a finding for each cause and kind of device that has a broken step."""
    devices = request.report["devices"]
    usable = Usable(devices)
    result = Broken()
    for group in _groups(request):
        own = own_findings(group, request.report["findings"])
        result.reported += own
        result.findings.append(_finding(group, own, request, usable))
    return result


def _groups(request: Request) -> Iterator[Group]:
    groups: dict[tuple[str, str, str | None], Group] = {}
    for device in request.report["devices"]:
        if device["kind"] in ACCELERATORS:
            for entry in _broken_steps(device):
                step = explained(request, device, entry) or _named(
                    device, entry, request.report["findings"]
                )
                key = (step["step"], step["code"] or "", device["name"] or device["vendor"])
                groups.setdefault(key, []).append((device, step))
    yield from groups.values()


def _broken_steps(device: DeviceDoc) -> Iterator[StepDoc]:
    readiness = device.get("readiness")
    for step in readiness["steps"] if readiness else ():
        if step["status"] == "broken" and step["step"] != _BY_VISIBILITY:
            yield step


def _named(device: DeviceDoc, step: StepDoc, reported: Iterable[FindingDoc]) -> StepDoc:
    """Return a step that says no more than that a plugin cannot query by the cause it gave."""
    if step["code"] != "query-fails":
        return step
    for entry in reported:
        cause = CAUSES.get(entry["evidence"] or "")
        is_own = entry["prober"] in (device["vendor"], *device["seen_by"])
        if entry["code"] == "prober-unavailable" and is_own and cause is not None:
            return broken(cause.step, cause.code, entry["why"])
    return step


def own_findings(group: Group, reported: Iterable[FindingDoc]) -> list[FindingDoc]:
    """Return the report's findings about the same break."""
    code, step = group[0][1]["code"], group[0][1]["step"]
    codes = {code, "no-driver" if step == "driver" else "device-blocked"}
    ids = {device["id"] for device, _ in group}
    return [
        entry
        for entry in reported
        if (entry["device"] in ids and (entry["step"] == step or entry["code"] == code))
        or (entry["device"] is None and entry["step"] == step and entry["code"] in codes)
    ]


def _finding(
    group: Group, own: Sequence[FindingDoc], request: Request, usable: Usable
) -> ShownFindingDoc:
    step = group[0][1]
    base = finding_of(group, request.scene, usable)
    result = shown(base)
    result["code"] = step["code"] or base["code"]
    # The device stands beside it: the sentence need not name it again.
    result["what"] = _sentence(meaning_of(group[0][0], step, request.scene))
    by_prober = next((entry for entry in own if entry["prober"] is not None), None)
    fix = fix_for(*group[0], request.scene)
    if fix is not None:
        result["action"] = document_of(fix.action)
    if by_prober is not None and not is_of_kernel(request, *group[0]):
        result["why"], result["prober"] = by_prober["why"], by_prober["prober"]
        if fix is None or not fix.is_exact:
            fixed(result, parts_of_text(by_prober["fix"]), request)
    result["severity"] = severity_of(*group[0], request.scene, usable, own)
    if len(group) > 1:
        result["devices"] = [device["id"] for device, _ in group]
    return result


def _sentence(text: str) -> str:
    """Return a clause as a sentence, unless it begins with the name of a program or file."""
    name = text.partition(" ")[0]
    is_name = not name.isalpha() or name in _NAMES
    return text if is_name else text[:1].upper() + text[1:]


def shown(entry: FindingDoc) -> ShownFindingDoc:
    """Return a copy of a finding of the report, to which the doctor adds keys of its own."""
    return {**entry}  # type: ignore[typeddict-item]  # those that a finding may have besides


def of_cause(
    request: Request, code: str, evidence: str, devices: Sequence[DeviceDoc] = ()
) -> ShownFindingDoc:
    """Return the finding of a cause that readiness does not judge.

    Without devices it is a warning: nothing shows that one of them is out of use.
    """
    cause = CAUSES[code]
    if devices:
        step = broken(cause.step, code, evidence)
        group = [(device, step) for device in devices]
        return _finding(group, (), request, Usable(()))
    fix = fix_of_machine(code, request.scene)
    result = shown(
        finding(
            code,
            _sentence(cause.meaning),
            evidence,
            fix.line,
            severity="warning" if cause.severity == "error" else cause.severity,
            step=cause.step,
            evidence=evidence,
        )
    )
    result["action"] = document_of(fix.action)
    return result


def fixed(result: CheckFindingDoc, fix: Fix, request: Request) -> None:
    """Give a finding another fix, and what that does."""
    parts = parts_of(fix)
    result["fix"] = "".join(parts)
    cause = CAUSES.get(result["code"])
    if cause is not None:
        result["action"] = document_of(action_for(parts, cause, request.scene))


def document_of(action: Action) -> ActionDoc:
    """Return an action as plain data."""
    return {
        "command": action.command or None,
        "where": action.where,
        "root": action.root,
        "precondition": action.precondition or None,
        "changes": action.changes,
        "removes": action.removes,
        "undo": action.undo,
        "reboots": action.reboots,
    }


# The checks of the causes that readiness knows: they read its steps, and look further where asked.
#
# One source: what the report says of a device and what the doctor says are the same steps.

_FOLDERS = (
    *("/etc/ld.so.conf", "/usr/lib", "/usr/local", "/lib", "/run/opengl-driver", "/usr/lib64"),
    "/lib64",
)
_LOADER = (*_FOLDERS, "/etc/ld.so.cache", "/etc/NIXOS", "/etc/ld.so.conf.d")
_PROCESS = ("/proc/self/status", "/proc/self/uid_map", "/proc/self/attr/current")
_MOUNTS = "/proc/self/mounts"
_NVIDIA_GPUS = "/proc/driver/nvidia/gpus"

READS: dict[str, tuple[str, ...]] = {
    "hardware": ("/sys/bus/pci/devices",),
    "driver": (
        *("/proc/modules", "/proc/cmdline", "/proc/driver/nvidia", "/sys/module"),
        *("/lib/modules", "/usr/lib/modules", "/var/lib/dkms", "/lib/firmware"),
        *("/etc/modprobe.d", "/run/modprobe.d", "/usr/lib/modprobe.d", "/lib/modprobe.d"),
        *("/sys/firmware/efi/efivars", _MOUNTS, *_FOLDERS),
        *("/sys/class/dmi/id", "/sys/hypervisor/type", "/proc/cpuinfo"),
    ),
    "node": (
        *("/dev", "/proc/devices", "/proc/modules", _MOUNTS, *_PROCESS, _NVIDIA_GPUS),
        *("/sys/bus/pci/devices", "/sys/class/drm", "/sys/class/kfd", "/usr/bin/nvidia-modprobe"),
    ),
    "permission": (
        *("/dev", *_PROCESS, "/etc/passwd", "/etc/group", "/sys/fs/selinux/enforce"),
        *("/sys/bus/pci/devices", "/proc/driver/nvidia"),
    ),
    "library": ("/proc/driver/nvidia/version", *_LOADER, NIXOS_VERSION),
    "granted": (
        *("/dev", "/proc/devices", "/sys/fs/cgroup/devices", "/sys/bus/pci/devices"),
        *(_NVIDIA_GPUS, "/proc/self", "/proc/self/limits"),
    ),
    "runtime": (
        *("/proc/driver/nvidia/version", "/sys/class/kfd", "/opt", "/proc/cmdline"),
        *("/proc/modules", "/sys/module/amdxdna/parameters", _MOUNTS, *_LOADER),
    ),
}
"""Step of readiness to what the report reads to judge it: files, or folders with them. The other
steps rest on plugins' answers and variables; each reads the signs of a container as well."""

_CHECKED_NAMES = {"darwin": "macOS", "windows": "Windows"}
_TITLES = {"nvidia": "NVIDIA", "amd": "AMD", "intel": "Intel"}


class CauseCheck:
    """The check of one cause of `model.causes`.

    `further` looks at what readiness does not judge: it costs more, or concerns no single device.
    """

    def __init__(self, cause: Cause, further: Check | None = None) -> None:
        self._cause = cause
        self._further = further
        self.code = cause.code
        self.step = cause.step
        own = further.needs if further else READS.get(cause.step, ())
        self.needs = (REPORT, *own)
        # Without the names that are filled in for a device.
        self.summary = f"Whether {cause.meaning}.".replace("{", "").replace("}", "")

    def run(self, request: Request) -> ResultDoc:
        """Return the answer where no step of readiness is broken by this cause."""
        system = self._cause.system
        if system and request.machine.os != system:
            return not_applicable(f"this is not {_CHECKED_NAMES[system]}")
        devices = concerned(self.code, request.report["devices"])
        if self._further is not None:
            return self._further.run(request)
        if not devices:
            vendor = _TITLES.get(self._cause.vendor, "")
            return not_applicable(f"no {vendor} accelerator is here".replace("  ", " "))
        return _of_steps(self.step, devices)


def concerned(code: str, devices: Iterable[DeviceDoc]) -> list[DeviceDoc]:
    """Return the accelerators that could have a cause."""
    vendor = CAUSES[code].vendor or None
    return [
        device
        for device in devices
        if device["kind"] in ACCELERATORS and vendor in (None, device["vendor"])
    ]


def _of_steps(step: str, devices: Sequence[DeviceDoc]) -> ResultDoc:
    """Return `passed`, unless the step of every device is unknown or not there."""
    steps = [entry for device in devices if (entry := _step(device, step)) is not None]
    judged = [entry for entry in steps if entry["status"] in ("ok", "broken")]
    if judged or not steps:
        return passed()
    reasons = [entry["evidence"] or "nothing is known" for entry in steps]
    if all(entry["status"] == "not_applicable" for entry in steps):
        return not_applicable(reasons[0])
    return unknown(reasons[0])


def _step(device: DeviceDoc, name: str) -> StepDoc | None:
    readiness = device.get("readiness")
    steps = readiness["steps"] if readiness else []
    return next((step for step in steps if step["step"] == name), None)


class ReportCheck:
    """The check of a finding that the report itself makes: settings, plugins, chips, memory."""

    def __init__(self, code: str) -> None:
        self.code = code
        self.step = ""
        self.needs = (REPORT,)
        self.summary = f"Whether {CODES[code]}."

    def run(self, request: Request) -> ResultDoc:
        """Return `passed`: a finding of the report is counted before checks run."""
        return passed()


def builtin_checks(further: Iterable[Check]) -> list[Check]:
    """Return the core's checks in the order of the chain; `further` are those of `checks`."""
    by_code = {check.code: check for check in further}
    checks: list[Check] = [CauseCheck(cause, by_code.get(code)) for code, cause in CAUSES.items()]
    checks += [by_code.get(code) or ReportCheck(code) for code in CODES if code not in CAUSES]
    return checks
