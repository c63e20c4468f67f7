"""Reads device-tree nodes: what a board's firmware says of devices that no bus can list.

Node paths begin at the root ("/soc/gpu@fb000000"); they are what a ``dt:`` id is made of.
"""

from __future__ import annotations

from probe_core.sysfs import uevent
from probe_core.sysfs.numbered import MAX_ENTRIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.machine import Machine

__all__ = [
    "PLATFORM",
    "TREE",
    "board",
    "compatibles",
    "enabled",
    "model",
    "node_path",
    "platform_devices",
]

TREE = "/sys/firmware/devicetree/base"
"""The root of the device tree."""

PLATFORM = "/sys/bus/platform/devices"
"""Where devices that no bus can list are, those of the device tree among them."""

_TREES = (TREE, "/proc/device-tree")
"""The second is a link to the first; containers that hide /sys/firmware may show it alone."""

_BLOCKS = (
    *("-pinctrl", "-pinmux", "-tlmm", "-iomuxc"),
    *("-cru", "-gcc", "-ccu", "-ccm", "-topckgen", "-cprman"),
)
"""How the pin controllers and clock controllers of SoCs are called: a SoC has one of them."""

LIMIT = 4096
"""Bytes of a node's property: Linux's longest list of compatibles is far below one kilobyte."""


def node_path(machine: Machine, folder: str) -> str | None:
    """Return the path of the node that the device at `folder` was made of; None without one.

    Where a container hides /sys/firmware, the link ``of_node`` leads nowhere and still names the
    node; so does the device's uevent (OF_FULLNAME).
    """
    node = machine.realpath(f"{folder}/of_node")
    if node.startswith(TREE + "/"):
        return node.removeprefix(TREE)
    name = uevent.read(machine, folder).get("OF_FULLNAME", "")
    return name if name.startswith("/") and len(name) > 1 else None


def platform_devices(machine: Machine) -> list[tuple[str, str]]:
    """Return (node path, folder) of each platform device that a node of the tree describes."""
    tree = machine.exists(TREE)
    devices: list[tuple[str, str]] = []
    for name in machine.listdir(PLATFORM)[:MAX_ENTRIES]:
        folder = f"{PLATFORM}/{name}"
        # With the tree in sight a device without the link has no node; else its uevent may say.
        if (not tree or machine.exists(f"{folder}/of_node")) and (
            path := node_path(machine, folder)
        ):
            devices.append((path, folder))
    return devices


def compatibles(machine: Machine, path: str, folder: str = "") -> list[str]:
    """Return a node's compatibles, the most specific first; of the root's node with "".

    Where the tree is hidden, the uevent of the device at `folder` has them (OF_COMPATIBLE_n).
    """
    for tree in _TREES:
        text = machine.read(f"{tree}{path}/compatible", LIMIT)
        if text:
            return [name for name in text.split("\0") if name]  # NUL-separated
    return uevent.listed(uevent.read(machine, folder), "OF_COMPATIBLE") if folder else []


def board(machine: Machine) -> list[str]:
    """Return the board's own compatibles: the board first, then its SoC.

    Where the tree is hidden, as in a container, the SoC alone, by the names of its own blocks.
    """
    return compatibles(machine, "") or _socs(machine)


def _socs(machine: Machine) -> list[str]:
    """Return the SoCs that pin and clock controllers are named after: one, on any board.

    Bindings name these blocks "vendor,soc-block" ("rockchip,rk3588-pinctrl", "qcom,sm8550-tlmm"),
    and the root of the tree "vendor,soc" (Documentation/devicetree/bindings/writing-bindings.rst).
    """
    socs: dict[str, None] = {}
    for name in machine.listdir(PLATFORM)[:MAX_ENTRIES]:
        block = uevent.read(machine, f"{PLATFORM}/{name}").get("OF_COMPATIBLE_0", "")
        for suffix in _BLOCKS:
            soc = block.removesuffix(suffix)
            # "allwinner,sun50i-h6" is a SoC; "qcom,sm8550-lpass-lpi" is the audio's pin controller.
            if soc != block and "," in soc and soc.count("-") <= 1:
                socs[soc] = None
    return list(socs)


def model(machine: Machine) -> str | None:
    """Return the board's name for people ("Radxa ROCK 5B"); None without a device tree."""
    texts = (machine.read(f"{tree}/model", 256) for tree in _TREES)
    return next((text for text in texts if text), None)


def enabled(machine: Machine, path: str) -> bool:
    """Return whether firmware lets the node be used (of_device_is_available in drivers/of/base.c).

    A node without a status is one that may.
    """
    return machine.read(f"{TREE}{path}/status", 32) in (None, "", "okay", "ok")
