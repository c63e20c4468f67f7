"""Says which architecture a recorded machine has, where the recording itself does not."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Read = Callable[[str], str | None]
    """Reads a file of the machine; None where it has none."""

__all__ = ["UNKNOWN", "architecture"]

UNKNOWN = "unknown"
MAX_WORD = 32
"""Characters of an architecture; the longest of `uname -m` have 11 (loongarch64)."""

_WORDS = (
    "x86_64 aarch64 ppc64le ppc64 riscv64 riscv32 s390x loongarch64 armv6l armv7l armv8l i686 i586"
    " i386 ia64 mips mips64 sparc64"
).split()
"""What `uname -m` prints, where distributions put it at the end of a kernel's release."""

# "cpu:type:x86,ven0000…": how the kernel names its processor for modules.
_MODALIAS = {"x86": "x86_64", "aarch64": "aarch64", "arm": "armv7l", "s390": "s390x"}
_FIRST = 16 << 10
"""Characters of /proc/cpuinfo that are looked at: several processors."""


def architecture(read: Read) -> str:
    """Return the architecture as ``uname -m`` names it, or ``unknown``.

    The kernel's own word (Linux 6.1), else its release ("4.18.0-553.el8.ppc64le"), else what
    /proc/cpuinfo and /sys say of the processor.
    """
    own = read("/proc/sys/kernel/arch")
    if own and is_word(own.strip()):
        return own.strip()
    release = (read("/proc/sys/kernel/osrelease") or "").strip().rpartition(".")[2]
    if release in _WORDS:
        return release
    text = read("/proc/cpuinfo")
    if text and (name := _of_cpuinfo(text[:_FIRST])):
        return name
    alias = (read("/sys/devices/system/cpu/modalias") or "").removeprefix("cpu:type:")
    return _MODALIAS.get(alias.replace(",", ":").partition(":")[0], UNKNOWN)


def is_word(text: str) -> bool:
    """Return whether a text is one word, as systems and architectures are named."""
    plain = text.replace("_", "").replace("-", "").replace(".", "")
    return len(text) <= MAX_WORD and plain.isascii() and plain.isalnum()


def _of_cpuinfo(text: str) -> str | None:
    pairs = [line.partition(":") for line in text.splitlines()]
    fields = {key.strip(): value.strip() for key, colon, value in reversed(pairs) if colon}
    if "CPU implementer" in fields:
        return _arm(fields)
    vendor = fields.get("vendor_id", "")
    if vendor == "IBM/S390":
        return "s390x"
    if vendor or "cpu family" in fields:
        return _x86(fields.get("flags", "").split())
    if fields.get("arch") == "IA-64":
        return "ia64"
    isa = fields.get("isa", "")
    if isa.startswith(("rv64", "rv32")):
        return "riscv64" if isa.startswith("rv64") else "riscv32"
    if fields.get("CPU Family", "").startswith("Loongson-64"):
        return "loongarch64"
    # From POWER8 on Linux runs in both byte orders, and this file looks the same.
    if fields.get("cpu", "").startswith(("POWER4", "POWER5", "POWER6", "POWER7", "Cell")):
        return "ppc64"
    if "cpu model" in fields:
        return "mips64" if "mips64" in isa else "mips"
    return None


def _x86(flags: list[str]) -> str | None:
    """Return x86_64 for long mode, and for AVX, which no processor had without it."""
    if "lm" in flags or "avx" in flags:
        return "x86_64"
    return "i686" if flags else None


def _arm(fields: dict[str, str]) -> str:
    version = fields.get("CPU architecture", "")
    if version in ("8", "AArch64"):
        # A 32-bit kernel lists no asimd: its programs are 32-bit on the same core.
        return "aarch64" if "asimd" in fields.get("Features", "asimd").split() else "armv8l"
    names = f"{fields.get('model name', '')} {fields.get('Processor', '')}"
    return "armv6l" if "ARMv6" in names else "armv7l"
