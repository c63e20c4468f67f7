"""The check of `probe doctor --next-boot` and `--if`: the doctor's rules on the machine to come."""

from __future__ import annotations

from probe_changes.initramfs import EARLY, stale
from probe_changes.kernels import Kernels
from probe_changes.loaders import NextBoot, next_boot
from probe_changes.packages import (
    STATUS,
    offline_update,
    unfinished,
    unread_database,
    wants_boot,
)
from probe_changes.projection import Projection
from probe_core.model.findings import NO_FIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from probe_core.doctor.check import Request

    Finding = dict[str, Any]

CODE = "next-boot"
MENDED = "mended-by-next-boot"
KERNEL = "next-kernel"
UNFINISHED = "package-unfinished"
UNKNOWN = "next-boot-unknown"
REQUIRED = "reboot-required"
UNSTARTED = "initramfs-missing"
OLDER = "initramfs-older"
KEEPS = "supposed-driver"

# What the files of a machine decide: only of these a boot is known to be the repair.
_BY_FILES = frozenset(
    (
        *("version-mismatch", "module-missing-for-kernel", "driver-not-installed", "nomodeset"),
        *("module-blacklisted", "secure-boot", "module-not-loaded", "kernel-too-old"),
        "module-unsigned",
        *("legacy-branch", "driver-too-old-for-gpu", "open-module-unsupported"),
        *("closed-module-unsupported", "firmware-missing", "gsp-firmware-missing"),
        *("nouveau-bound", "nova-bound", "library-missing", "nvml-missing"),
    )
)

_OF_PACKAGE = ("gsp-firmware-missing", "version-mismatch", "library-missing", "nvml-missing")
"""Causes that a driver's package repairs as it is installed: an assumed driver has none of them."""

_MISSING = ("module-missing-for-kernel", "driver-not-installed")
_REFUSED = ("secure-boot", "module-unsigned", "module-not-loaded")
"""Causes of a module whose signature the kernel refuses: with Secure Boot, and without."""

_MAX_KERNELS = 8


class NextBootCheck:
    """The check; see `probe_core.doctor.check.Check`."""

    code = CODE
    step = "driver"
    needs = (
        *("/boot", "/sys/firmware/efi/efivars", "/etc/default/grub", "/sys/kernel/kexec_loaded"),
        "/etc/default/grub.d",
        *("/run/ostree", "/usr/src/akmods", "/var/lib/dpkg/status", "/nix/var/nix/profiles"),
        *("/lib/modules", "/var/lib/dkms", "/run/reboot-required", "/run/reboot-needed"),
    )
    summary = "Whether the next boot, or what is assumed, takes a device its driver."

    def run(self, request: Request) -> dict[str, Any]:
        """Return the findings about the machine to come."""
        scene, assumed = request.scene, request.assumed
        driver = assumed.get("driver", "")
        boots = "boot" in assumed or "kernel" in assumed
        if not boots and not driver:
            return _result("not_applicable", reason="neither a kernel nor a driver is assumed")
        if not scene.linux or scene.wsl or (boots and scene.container is not None):
            place = "a container or WSL" if scene.linux else request.machine.os
            return _unseen("not_applicable", f"this is {place}: its host decides what boots")
        kernels = Kernels(request.machine)
        boot = _boot(request, kernels) if boots else None
        if boot is None:
            boot = NextBoot(scene.release or None, "assumed", "the running kernel stays")
        if boot.release is None:
            return _of_every_kernel(request, kernels, boot.why)
        projection = Projection(request, boot, driver)
        own, unknown = _judged(request, projection, boot, driver)
        findings = [_about(boot, request), *own] if boots else own
        unread = ""
        if "boot" in assumed:
            findings += [*unfinished_packages(request), *_awaited_boot(request)]
            findings += [
                *_without_initramfs(boot, kernels),
                *_older_initramfs(request, projection, kernels),
            ]
            unknown += _offline_update(request)
            unread = unread_database(request.machine)
        reason = "; ".join(dict.fromkeys(unknown))
        if unknown or unread:
            # A database that is not read is no reason for "unknown": every Fedora has one.
            findings.append(_open_question("; ".join(filter(None, (reason, unread)))))
        if any(finding["severity"] != "info" for finding in findings):
            return _result("failed", findings)
        if unknown:
            return _result("unknown", findings, reason)
        return _result("passed", findings or [_as_assumed(driver)])


def _boot(request: Request, kernels: Kernels) -> NextBoot:
    wanted = request.assumed.get("kernel", "")
    if not wanted:
        return next_boot(request.machine, kernels)
    names = [*kernels.images, *kernels.folders]
    fitting = [name for name in names if name == wanted] or [
        name for name in dict.fromkeys(names) if name.startswith(wanted)
    ]
    release = fitting[0] if len(fitting) == 1 else wanted
    return NextBoot(release, "assumed", f"Linux {release} is assumed")


def _result(status: str, findings: list[Finding] | None = None, reason: str = "") -> dict[str, Any]:
    return {"status": status, "findings": findings or [], "reason": reason or None}


def _unseen(status: str, reason: str) -> dict[str, Any]:
    """Return an answer that is none, with a hint: who asked is shown why."""
    return _result(status, [_open_question(reason)], reason)


def _open_question(reason: str) -> Finding:
    return _finding(UNKNOWN, "info", "Not all of the next boot can be known", reason, NO_FIX)


def _as_assumed(driver: str) -> Finding:
    what = f"The driver {driver} takes every GPU of NVIDIA's that is here"
    return _finding(KEEPS, "info", what, f"the driver {driver} is assumed", NO_FIX)


def _finding(code: str, severity: str, what: str, why: str, fix: str, **more: object) -> Finding:
    return {"code": code, "severity": severity, "what": what, "why": why, "fix": fix, **more}


def _about(boot: NextBoot, request: Request) -> Finding:
    """Return the hint that names the kernel, and how surely."""
    running = request.scene.release
    same = " as now" if boot.release == running else ""
    how = {"known": "boots next", "likely": "likely boots next", "assumed": "is assumed"}
    what = f"Linux {boot.release} {how[boot.certainty]}{same}"
    return _finding(KERNEL, "info", what, boot.why, NO_FIX, evidence=boot.why, has=running)


def _judged(
    request: Request, projection: Projection, boot: NextBoot, driver: str
) -> tuple[list[Finding], list[str]]:
    """Return the findings about one kernel and driver, and what could not be known."""
    found, now = request.findings_on(projection.machine)
    if driver:
        found = [finding for finding in found if finding["code"] not in _OF_PACKAGE]
    surely = [f for f in found if projection.has_modules or f["code"] not in _MISSING]
    unknown = list(projection.unknown)
    if len(surely) < len(found):
        unknown.append(projection.unseen)
    findings = [
        own for finding in surely for own in _broken(finding, projection, boot, driver, now)
    ]
    broken = {id_ for finding in found for id_ in _ids(finding)}
    mended = [id_ for id_, code in now.items() if id_ not in broken and code in _BY_FILES]
    if not unknown:
        findings += [_mended(id_, now[id_], boot, driver) for id_ in mended]
    return findings, unknown


def _ids(finding: Any) -> list[str]:
    return finding.get("devices") or ([finding["device"]] if finding["device"] else [])


def _broken(
    finding: Any, projection: Projection, boot: NextBoot, driver: str, now: dict[str, str]
) -> list[Finding]:
    """Return the doctor's finding for each device, in words about the machine to come."""
    subject = f"Once Linux {boot.release} runs"
    if driver:
        subject = f"With the driver {driver}"
    elif boot.certainty == "unknown":
        subject = f"If Linux {boot.release} boots"
    ids = _ids(finding)
    stays = all(now.get(id_) == finding["code"] for id_ in ids)
    what = f"{subject}{', as now' if stays else ''}: {finding['what']}"
    module = projection.module_of(ids)
    repair = projection.builds_at_boot(module) if finding["code"] in _MISSING else ""
    severity = "warning" if repair and finding["severity"] == "error" else finding["severity"]
    refused = projection.refused.get(module, "") if finding["code"] in _REFUSED else ""
    evidence = [finding["evidence"] or finding["why"], refused, repair]
    if finding["code"] in _MISSING and (log := projection.failed_build(module)):
        evidence.append(f"{log}: its build failed")
    why = "; ".join(filter(None, evidence))
    return [
        _finding(
            finding["code"],
            severity,
            what,
            why,
            finding["fix"],
            evidence=why,
            device=device or None,
        )
        for device in ids or ("",)
    ]


def _mended(device: str, code: str, boot: NextBoot, driver: str) -> Finding:
    subject = f"the driver {driver}" if driver else f"the boot of Linux {boot.release}"
    why = f"{code} is broken now, and no rule of the doctor's breaks it then"
    fix = NO_FIX if driver else "sudo reboot"
    return _finding(MENDED, "info", f"{subject} repairs {code}", why, fix, device=device)


def _of_every_kernel(request: Request, kernels: Kernels, reason: str) -> dict[str, Any]:
    """Judge each installed kernel where it is not known which boots: warnings with its name."""
    findings: list[Finding] = []
    for release in [*kernels.images][:_MAX_KERNELS]:
        boot = NextBoot(release, "unknown", reason)
        driver = request.assumed.get("driver", "")
        own, _ = _judged(request, Projection(request, boot, driver), boot, driver)
        findings += [{**f, "severity": "warning"} for f in own if f["severity"] == "error"]
    if "boot" in request.assumed:
        findings += unfinished_packages(request)
        reason = "; ".join((reason, *_offline_update(request)))
    why = f"which kernel boots next is not known: {reason}"
    if not findings:
        return _unseen("unknown", why)
    return _result("failed", [*findings, _open_question(why)], why)


def unfinished_packages(request: Request) -> list[Finding]:
    """Return the packages of drivers and kernels that a package manager left half done."""
    return [
        _finding(
            UNFINISHED,
            "warning",
            f"the package {name} is {state}: what it installs may not be whole",
            f"{STATUS}: {name}: {state}",
            "sudo dpkg --configure -a",
            evidence=name,
        )
        for name, state in unfinished(request.machine)
    ]


def _awaited_boot(request: Request) -> list[Finding]:
    """Return the hint that packages wait for the boot: no fault, and what the boot completes."""
    wanted = wants_boot(request.machine)
    if wanted is None:
        return []
    path, names = wanted
    what = f"{', '.join(names[:4]) or 'a package'} asks for a boot"
    return [_finding(REQUIRED, "info", what, f"{path} is there", "sudo reboot", evidence=path)]


def _offline_update(request: Request) -> list[str]:
    link = offline_update(request.machine)
    if not link:
        return []
    return [f"{link}: the next boot installs packages, and what they change is not known"]


def _older_initramfs(request: Request, projection: Projection, kernels: Kernels) -> list[Finding]:
    """Return the hint about an initramfs that is older than what it must hold."""
    release = projection.release
    devices = [d for d in request.report["devices"] if d["kind"] in ("gpu", "accelerator")]
    names = [name for d in devices for name in EARLY.get(d["vendor"] or "", ())]
    ids = [d["pci"]["id"] for d in devices if d["pci"]]
    file = projection.file_of("nvidia") if any(d["vendor"] == "nvidia" for d in devices) else None
    old = stale(request.machine, kernels.initramfs_of(release), names, ids, file)
    if old is None:
        return []
    what = f"{old.initramfs} is older than {old.source}: it may start {old.about[0]} as before"
    why = f"{old.source} is about {', '.join(old.about)}; what the initramfs holds is not read"
    fix = f"sudo update-initramfs -u -k {release}, or sudo dracut --force --kver {release}"
    return [_finding(OLDER, "info", what, why, fix, evidence=why)]


def _without_initramfs(boot: NextBoot, kernels: Kernels) -> list[Finding]:
    """Return the warning about a kernel without its initramfs, where the others have theirs."""
    release = boot.release or ""
    if not kernels.lacks_initramfs(release):
        return []
    what = f"Linux {release} has no initramfs in /boot, and the other kernels have one"
    why = f"/boot has {kernels.images[release].rpartition('/')[2]} alone"
    fix = f"sudo update-initramfs -c -k {release}, or sudo dracut --kver {release}"
    return [_finding(UNSTARTED, "warning", what, why, fix, evidence=why)]


CHECKS = [NextBootCheck()]
