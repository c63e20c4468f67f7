"""Machines without the accelerator that they point to, and look-alikes that point to none.

Invented, each after a situation that people report.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from readiness_nodes import LIBRARIES, VERSION, VERSION_TEXT, Node, nvidia

Make = Callable[[Path], Node]

WMI = "/sys/devices/platform/asus-nb-wmi"
ASUS = f"{WMI}/dgpu_disable"
ARMOURY = "/sys/class/firmware-attributes/asus-armoury/attributes/dgpu_disable/current_value"
RULE = (
    'ACTION=="add", SUBSYSTEM=="pci", ATTR{vendor}=="0x10de", ATTR{class}=="0x03[0-9]*",'
    ' ATTR{power/control}="auto", ATTR{remove}="1"\n'
)
USB_RULE = RULE.replace("0x03[0-9]*", "0x0c0330")
LOST = "NVRM: GPU 0000:01:00.0: GPU has fallen off the bus."
UUID = "d9010000-0090-8d08-23dd-b41c94851823"
GRANTED = "GPU-01234567-89ab-cdef-0123-456789abcdef"


def server(root: Path) -> Node:
    """Return a server with a network card, and no display."""
    node = Node(root)
    node.tree.pci("0000:05:00.0", "15b3:1017", pci_class="020000", driver="mlx5_core")
    node.modules("ext4", "mlx5_core")
    return node


def laptop(root: Path) -> Node:
    """Return a laptop with the processor's own graphics alone, and what its runtime needs."""
    node = Node(root)
    node.tree.pci("0000:00:02.0", "8086:a7a0", driver="i915", drm=(0, 128))
    node.nodes("/dev/dri/renderD128")
    node.modules("ext4", "i915")
    node.file(f"{LIBRARIES}/libze_intel_gpu.so.1", b"\x7fELF\x02")
    return node


def virtual(root: Path) -> Node:
    node = Node(root)
    node.tree.pci("0000:00:02.0", "1234:1111", driver="bochs-drm", drm=(0, 128))
    node.modules("ext4", "bochs")
    node.file("/sys/class/dmi/id/sys_vendor", "QEMU\n")
    return node


def with_driver(make: Make, *modules: str) -> Make:
    """Add the libraries of NVIDIA's driver, and modules that are loaded."""

    def maker(root: Path) -> Node:
        node = make(root)
        for name in ("libcuda.so", "libnvidia-ml.so"):
            real = f"{LIBRARIES}/{name}.{VERSION}"
            node.file(real, b"\x7fELF\x02\x01\x01")
            node.tree.link(f"{LIBRARIES}/{name}.1", real)
        if modules:
            node.modules("ext4", *modules)
        if "nvidia" in modules:
            node.file("/proc/driver/nvidia/version", VERSION_TEXT)
        return node

    return maker


def with_files(make: Make, files: dict[str, object]) -> Make:
    def maker(root: Path) -> Node:
        node = make(root)
        for path, content in files.items():
            node.file(path, content)
        return node

    return maker


def with_log(make: Make, *lines: str) -> Make:
    return with_files(make, {"/var/log/dmesg": "\n".join(["Linux version 6.8.0", *lines, ""])})


def thunderbolt(name: str | None, authorized: int = 0, security: str = "user") -> Make:
    """Return a machine with a device at its Thunderbolt port."""
    folder = "/sys/bus/thunderbolt/devices"
    files: dict[str, object] = {
        f"{folder}/0-0/authorized": "1\n",
        f"{folder}/0-1/authorized": f"{authorized}\n",
        f"{folder}/0-1/unique_id": f"{UUID}\n",
        f"{folder}/domain0/security": f"{security}\n",
    }
    if name is not None:
        files |= {f"{folder}/0-1/vendor_name": "Razer\n", f"{folder}/0-1/device_name": f"{name}\n"}
    return with_files(server, files)


def wsl(release: str, *nodes: str) -> Make:
    def make(root: Path) -> Node:
        node = Node(root)
        node.tree.release(release)
        node.nodes("/dev/null", *nodes)
        return node

    return make


def contained(sign: str = "/.dockerenv", make: Make = server, **environ: str) -> Make:
    def maker(root: Path) -> Node:
        node = make(root)
        node.environ.update(environ)
        node.container(sign)
        return node

    return maker


def sound_alone(root: Path) -> Node:
    node = server(root)
    node.tree.pci("0000:01:00.1", "10de:22ba", pci_class="040300", driver="snd_hda_intel")
    return node


def sound_and_gpu(root: Path) -> Node:
    node = nvidia(root)
    node.tree.pci("0000:01:00.1", "10de:22ba", pci_class="040300", driver="snd_hda_intel")
    return node


def rule(text: str, make: Make = laptop) -> Make:
    return with_files(make, {"/etc/udev/rules.d/50-remove-nvidia.rules": text})


def xg_mobile(enable: int, *, connected: int = 1, make: Make = laptop) -> Make:
    """Return a ROG Flow laptop with its external GPU, and the switch of that."""
    files: dict[str, object] = {
        f"{WMI}/egpu_connected": f"{connected}\n",
        f"{WMI}/egpu_enable": f"{enable}\n",
    }
    return with_files(make, files)


PAIRS: dict[str, tuple[Make, Make]] = {
    "wsl-1": (wsl("4.4.0-19041-Microsoft"), wsl("4.4.0-210-generic")),
    "wsl-without-gpu": (
        wsl("5.15.153.1-microsoft-standard-WSL2"),
        wsl("5.15.153.1-microsoft-standard-WSL2", "/dev/dxg", "/usr/lib/wsl/lib/libcuda.so.1"),
    ),
    "gpu-off-in-firmware": (with_files(laptop, {ASUS: "1\n"}), with_files(laptop, {ASUS: "0\n"})),
    "gpu-removed-by-rule": (rule(RULE), rule(USB_RULE)),
    "gpu-off-by-mode": (
        with_files(with_driver(laptop), {"/etc/prime-discrete": "off\n"}),
        with_files(laptop, {"/etc/prime-discrete": "off\n"}),
    ),
    "egpu-off-in-firmware": (xg_mobile(0), xg_mobile(0, connected=0)),
    "egpu-not-authorized": (thunderbolt("Core X Chroma"), thunderbolt("Thunderbolt Dock G2")),
    "container-without-device": (
        contained(NVIDIA_VISIBLE_DEVICES=GRANTED),
        # It was given what it asked for: no GPU, and an NPU.
        with_files(
            contained(NVIDIA_VISIBLE_DEVICES="void", ASCEND_VISIBLE_DEVICES="0"),
            {"/dev/davinci_manager": ""},
        ),
    ),
    "device-lost": (with_log(server, LOST), with_log(nvidia, LOST)),
    "function-without-gpu": (sound_alone, sound_and_gpu),
    "driver-without-device": (with_driver(server, "nvidia"), nvidia),
}
"""Code of a sign to a machine that has it, and one that looks alike and has its accelerators."""
