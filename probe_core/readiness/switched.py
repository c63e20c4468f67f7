"""What switches a laptop's discrete GPU off: its firmware, a rule of udev, or a tool's mode.

The GPU is then on no bus. What says so are small files, which a recording keeps.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_core.machine import Machine

__all__ = [
    "ARMOURY",
    "ASUS",
    "EGPU",
    "PRIME",
    "RULES",
    "SUPERGFX",
    "SUSE_PRIME",
    "modes",
    "removals",
]

ASUS = "/sys/devices/platform/asus-nb-wmi/dgpu_disable"
"""Linux, Documentation/ABI/testing/sysfs-platform-asus-wmi: 1 disables the discrete GPU."""

ARMOURY = "/sys/class/firmware-attributes/asus-armoury/attributes/dgpu_disable/current_value"
"""The same with asus-armoury, which takes the place of asus-nb-wmi's attributes."""

_WMI = "/sys/devices/platform/asus-nb-wmi"
_ARMOURY = "/sys/class/firmware-attributes/asus-armoury/attributes"
EGPU = {
    f"{_WMI}/egpu_connected": f"{_WMI}/egpu_enable",
    f"{_ARMOURY}/egpu_connected/current_value": f"{_ARMOURY}/egpu_enable/current_value",
}
"""Whether a ROG XG Mobile is connected, to what switches it on (the same two drivers; the ABI:
"Enable the external GPU paired with ROG X-Flow laptops. Toggling this setting will also trigger
ACPI to disable the dGPU"). The firmware asks for a restart: key 0xC2 in the notes of
XG_Mobile_Station on the vendor's software."""

RULES = ("/etc/udev/rules.d", "/run/udev/rules.d", "/usr/lib/udev/rules.d", "/lib/udev/rules.d")
"""Where udev reads its rules (udev(7)); EnvyControl writes 50-remove-nvidia.rules into one."""

_OF_PACKAGES = RULES[2:]
_MAX_RULES, _RULES_SIZE = 64, 64 << 10
"""Files of one folder, and bytes of one. A judgement: an administrator has about ten."""

PRIME, SUSE_PRIME = "/etc/prime-discrete", "/etc/prime/current_type"
"""The modes of prime-select, of Ubuntu (on, on-demand, off; system76-power writes it too) and of
openSUSE (nvidia, intel, intel2, offload)."""

SUPERGFX = "/etc/supergfxd.conf"
"""supergfxd's configuration, a JSON object with a `mode`."""

_INTEGRATED = '"mode": "Integrated"'


def removals(machine: Machine) -> Iterator[tuple[str, str]]:
    """Yield (path, line) of the rules that take displays off the bus."""
    for path in _rules(machine):
        text = machine.read(path, _RULES_SIZE) or ""
        for line in text.replace("\\\n", " ").splitlines():
            if _removes_displays(line.replace(" ", "")):
                yield path, line.strip()


def _removes_displays(line: str) -> bool:
    """Take "0x030000", "0x0302*" and "0x03[0-9]*", not the sound and USB that such files remove."""
    if line.startswith("#") or 'ATTR{remove}="1"' not in line:
        return False
    return 'ATTR{class}=="0x03' in line


def _rules(machine: Machine) -> Iterator[str]:
    """Yield the files of rules: all of the administrator's, of packages those about GPUs."""
    for folder in RULES:
        names = [name for name in machine.listdir(folder) if name.endswith(".rules")]
        if folder in _OF_PACKAGES:
            names = [name for name in names if "nvidia" in name or "gpu" in name]
        yield from (f"{folder}/{name}" for name in names[:_MAX_RULES])


def modes(machine: Machine) -> Iterator[tuple[str, str]]:
    """Yield (path, text) of the modes that leave the discrete GPU off."""
    if _is_integrated(machine.read(SUPERGFX, 4096) or ""):
        yield SUPERGFX, _INTEGRATED
    if machine.read(PRIME, 32) == "off":
        yield PRIME, "off"
    mode = machine.read(SUSE_PRIME, 32)
    if mode in ("intel", "intel2"):
        yield SUSE_PRIME, mode


def _is_integrated(text: str) -> bool:
    line = next((line for line in text.splitlines() if '"mode"' in line), "")
    return '"Integrated"' in line.partition('"mode"')[2].split(",")[0]
