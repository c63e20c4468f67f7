"""What a Mac says of itself: the text of system_profiler, parsed on any system."""

from __future__ import annotations

import subprocess
import sys

from probe_exo.chip_lookup import figures_by_name
from probe_exo.rule import NAMES, UNKNOWN_CHIP, UNKNOWN_MODEL, Facts

__all__ = ["PINNED", "mac_facts", "parse_hardware"]

# Seconds; a judgement: system_profiler has no time limit of its own, and a hang must end.
_TIMEOUT_S = 10

_HARDWARE = ["system_profiler", "SPHardwareDataType"]
_DISPLAYS = ["system_profiler", "SPDisplaysDataType"]
# system_profiler writes binary amounts with decimal units: "128 GB" are 128 GiB.
_MIB = {"KB": 1 / 1024, "MB": 1, "GB": 1024, "TB": 1024 * 1024}

PINNED = {"Apple M3 Max": (14.20, 28.40, 56.80)}
"""What old exo's own tests compare to the letter, for the chip that they use.

They feed system_profiler's text and expect these numbers; chipdb has 14.13, 14.13 and no int8 path
for that GPU's 40 cores. Used only where the number of GPU cores is not told, as in those tests: a
real Mac tells it.
"""


def mac_facts() -> Facts:
    """Ask system_profiler, now, and sysctl for what it leaves open.

    Never raises; what neither answers is in `reasons`. system_profiler hangs or fails in sandboxes,
    over ssh before a login, and on betas, where a node with 0 MiB would get no layer.
    """
    text, reason = _output(_HARDWARE)
    model, chip, memory = parse_hardware(text)
    reasons: dict[str, str] = {}
    if model == UNKNOWN_MODEL:
        reasons["model"] = reason or "system_profiler prints no Model Name line"
    memory = memory or _memory_mib()
    if not memory:
        reasons["memory"] = reason or "system_profiler prints no Memory line"
    if chip == UNKNOWN_CHIP:
        chip = _sysctl("machdep.cpu.brand_string") or UNKNOWN_CHIP
    if chip == UNKNOWN_CHIP:
        reasons["chip"] = reason or "system_profiler prints no Chip line"
        return Facts(model, chip, memory, reasons=reasons | dict.fromkeys(NAMES, reasons["chip"]))
    flops, why_not = _flops(chip)
    return Facts(model, chip, memory, *flops, reasons=reasons | why_not)


def _memory_mib() -> int:
    """Return the memory that the kernel tells, else psutil; 0 where neither does, or on no Mac."""
    if sys.platform != "darwin":  # text of a Mac read elsewhere: the memory here is another's
        return 0
    size = _sysctl("hw.memsize")
    if size.isdecimal() and len(size) <= 20:
        return int(size) >> 20
    try:
        import psutil

        return int(psutil.virtual_memory().total) >> 20
    except Exception:  # psutil raised on betas of macOS 26 and 27 (exo PR 2161)
        return 0


def _sysctl(name: str) -> str:
    """Return one value of sysctl(8); "" where it is not told, and on no Mac."""
    if sys.platform != "darwin":
        return ""
    text, reason = _output(["sysctl", "-n", name])
    return "" if reason else text.strip()


def _output(command: list[str]) -> tuple[str, str | None]:
    try:
        # Called through the module: hosts and tests replace subprocess.check_output.
        raw = subprocess.check_output(command, stderr=subprocess.DEVNULL, timeout=_TIMEOUT_S)
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
    lines: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon and value.strip():
            lines.setdefault(name.strip(), value.strip())
    return lines


def _mib(text: str) -> int:
    amount, _, unit = text.partition(" ")
    try:
        return max(0, int(float(amount) * _MIB[unit.strip().upper()]))
    except (ValueError, KeyError, OverflowError):
        return 0


def _flops(chip: str) -> tuple[tuple[float, float, float], dict[str, str]]:
    figures = figures_by_name(chip)
    if figures.ambiguous:
        units = _gpu_cores(chip)
        if units is not None:
            figures = figures_by_name(chip, units)
        elif chip in PINNED:
            values = dict(zip(NAMES, figures.numbers, strict=True))
            reason = "the number that old exo's tests pin; how many GPU cores there are is not told"
            return PINNED[chip], {name: f"{reason}; chipdb: {values[name]:.2f}" for name in NAMES}
    return figures.numbers, dict(figures.reasons)


def _gpu_cores(chip: str) -> int | None:
    """Return the GPU's cores, which one name of Apple leaves open; None when not told."""
    text, reason = _output(_DISPLAYS)
    lines = {} if reason else _lines(text)
    cores = lines.get("Total Number of Cores", "")
    if lines.get("Chipset Model") != chip or not (cores.isdecimal() and len(cores) <= 4):
        return None
    return int(cores)
