"""What a person should know about the node, with a cause and a fix; every code is listed here.

A host's own log has them too: the logger ``probe_core``, silent by default.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from probe_core.model.document import FindingDoc, Severity

NO_FIX = "nothing to do"
"""The fix of a finding that needs none: terminals leave its line out."""

CODES: dict[str, str] = {
    "baseline-of-another-computer": "the baseline is not compared: another computer saved it",
    "budget-exceeded": "a distribution's data is more than a probe reads; the rest was left out",
    "chip-ambiguous": "the device's ids and name fit several chips, and nothing distinguishes them",
    "chip-conflict": "two keys of a device name different chips; the stronger key won",
    "chip-file-unusable": "nothing of the chip file that a setting names could be used",
    "chip-unknown": "chipdb does not know the chip, so its peaks are derived or unknown",
    "chipdb-missing": "no usable chipdb is installed, so no chip could be named",
    "chipdb-problem": "a chip file or vendor package was left out, wholly or in part",
    "config-ignored": "a setting from the environment or a file could not be used",
    "device-blocked": "a prober reports a device that cannot be used, for a cause of its own",
    "display-only": "a display adapter that cannot compute was not counted as an accelerator",
    "distribution-broken": "an installed distribution's entry points could not be read",
    "driver-crashes": "a prober's process died while it asked a device",
    "driver-disagrees": "a runtime reports other devices than its rules predict",
    "driver-hangs": "a prober's process hung while it asked a device",
    "expectation-unusable": "an expectation names what no chip is called",
    "fewer-than-expected": "fewer accelerators are here than a setting expects",
    "hidden-by-variable": "an environment variable hides a device from programs",
    "hook-failed": "one of the host's own hooks raised",
    "identity-conflict": "sightings that share an id disagree about another strong id",
    "manifest-problem": "a prober's manifest has a mistake; defaults were used instead",
    "measured-unusable": "the file of measured figures is unreadable, another version's or absurd",
    "memory-limited": "a cgroup lets this process use less memory than the machine has",
    "more-than-expected": "accelerators are here that a setting does not expect",
    "no-bytecode": "the installation has no bytecode, so a start takes about four times as long",
    "no-cpu-facts": "the CPU or memory of this machine could not be read",
    "no-driver": "an accelerator is on the bus without a driver, or reserved for a guest",
    "order-unknown": "only the driver knows in which order a runtime counts the devices",
    "peak-exceeded": "two undisturbed runs were faster than the derived peak at their own clock",
    "prober-failed": "a prober crashed, hung or broke the contract",
    "prober-raises": "a prober raised while it asked a device, and was run again without it",
    "prober-missing": "an accelerator was detected that no installed prober supports",
    "prober-refused": "a prober did not run: root must not trust it, or it does not fit this core",
    "prober-unavailable": "a prober's hardware is here but could not be queried",
    "prober-unkillable": "a prober is stuck in the kernel and was abandoned",
    "processors-limited": "this process may use fewer cores, or less CPU time, than there are",
    "python-untried": "probe has not been tried on this build of Python",
    "readiness-conflict": "a prober calls a device broken that a better source knows to be well",
    "restriction-unusable": "an allowlist or configuration file cannot be used: no plugin ran",
    "shutdown-fails": "a prober raised or died after it had read all devices",
    "shutdown-hangs": "a prober hung after it had read all devices",
    "static-unusable": "the report named by PROBE_STATIC cannot be used: no plugin ran",
    "unknown-prober": "a setting names a prober that is not installed",
    "unlike-expected": "a device has less than expected, or than when the baseline was saved",
    "variable-breaks": "a variable's value keeps a runtime from starting at all",
    "variable-duplicate": "a variable names a device twice, which hides it, or all of them",
    "variable-skips": "a variable's entry means no device and is passed over",
    "variable-stops-at": "a variable's entry ends the list: what follows is not read",
    "variable-empty": "a variable is set to an empty value, which hides every device",
    "value-rejected": "a prober reported a value that cannot be true; it was left out",
}
"""The core's own codes and what each means. Probers may add theirs.

Devices that cannot be used have the codes of `model.causes`, too.
"""


def finding(
    code: str,
    what: str,
    why: str,
    fix: str,
    *,
    severity: Severity = "warning",
    device: str | None = None,
    prober: str | None = None,
    setting: str | None = None,
    variable: str | None = None,
    step: str | None = None,
    evidence: str | None = None,
) -> FindingDoc:
    """Return a finding of the core; `code` must be one of `CODES`, or of `causes.CAUSES`.

    `what`, `why` and `fix` are sentences for people; no code reads them. The rest are facts for
    code and scripts: `device` an id, `prober` a prober's name, `setting` a key of
    `config.SETTINGS`, `variable` an environment variable, `step` a step of readiness, `evidence`
    a path with what it holds, an error code, or a library's own text.
    """
    assert code in CODES or _is_cause(code), code
    return {
        "code": code,
        "severity": severity,
        "what": what,
        "why": why,
        "fix": fix,
        "device": device,
        "prober": prober,
        "setting": setting,
        "variable": variable,
        "step": step,
        "evidence": evidence,
    }


def _is_cause(code: str) -> bool:
    from probe_core.model.causes import CAUSES

    return code in CAUSES


_LEVELS = {"info": 20, "warning": 30, "error": 40}
"""Severity to the level of the standard library's logging."""


def log(findings: Iterable[FindingDoc]) -> None:
    """Pass findings on to the logger ``probe_core``: what is wrong, why, and what to do.

    Nothing is imported for it: who has not imported logging has set nothing up that could hear.
    """
    logging = sys.modules.get("logging")
    if logging is None or not hasattr(logging, "getLogger"):
        return
    logger = logging.getLogger("probe_core")
    if not logger.handlers:
        # Else logging's last resort would write warnings to standard error.
        logger.addHandler(logging.NullHandler())
    for finding in findings:
        level = _LEVELS.get(finding["severity"], 20)
        parts = finding["what"], finding["why"], finding["fix"], finding["code"]
        try:
            logger.log(level, "%s: %s; %s [%s]", *parts)
        except Exception:  # a host's own filter or handler: the node starts without its line
            return
