"""Builds the files of an invented machine: /sys, /proc and the device tree, in a test's folder."""

from __future__ import annotations

import os
from pathlib import Path

from probe_core.machine import Machine

ROOT_BUS = "/sys/devices/pci0000:00"
DEVICE_TREE = "/sys/firmware/devicetree/base"
Link = tuple[int, float]
"""Lanes, and gigatransfers per second and lane."""


class Tree:
    """A folder that stands for ``/`` and is filled device by device.

    Paths and link targets are the machine's own absolute ones ("/sys/class/drm"). Methods that add
    a device return its real folder in /sys, in which further files can be written. Keywords that
    none of them knows are files of the device: ``numa_node=0``, and ``power__control="auto"`` for
    a file in a folder.
    """

    def __init__(self, root: Path, arch: str = "x86_64") -> None:
        self.root = root
        self.arch = arch

    def machine(self) -> Machine:
        """Return the machine as a prober's request has it."""
        return Machine(str(self.root), arch=self.arch)

    def file(self, path: str, content: object) -> Path:
        """Write a file: bytes and text as they are, a number with a newline as the kernel does."""
        place = self._place(path)
        if isinstance(content, bytes):
            place.write_bytes(content)
        else:
            place.write_text(content if isinstance(content, str) else f"{content}\n")
        return place

    def link(self, path: str, target: str) -> None:
        """Add a relative link, as the kernel's are; a missing target is made a folder."""
        place, aim = self._place(path), self.root / target.lstrip("/")
        if not aim.exists():
            aim.mkdir(parents=True)
        if not place.is_symlink():
            # Resolved: a link in a folder that was reached through a link counts from the real one.
            place.symlink_to(os.path.relpath(aim, place.parent.resolve()))

    def release(self, version: str = "6.12.9") -> None:
        """Say which Linux runs."""
        self.file("/proc/sys/kernel/osrelease", f"{version}\n")

    def memory(self, total_kib: int, available_kib: int) -> None:
        """Say how much memory the system has, in KiB."""
        text = f"MemTotal: {total_kib} kB\nMemFree: 1 kB\nMemAvailable: {available_kib} kB\n"
        self.file("/proc/meminfo", text)

    def pci(
        self,
        address: str,
        ids: str,
        *,
        pci_class: str = "030000",
        driver: str | None = None,
        power: str | None = "active",
        under: str = ROOT_BUS,
        subsystem: str | None = None,
        link: Link | None = None,
        max_link: Link | None = None,
        drm: tuple[int, int] | None = None,
        accel: int | None = None,
        **files: object,
    ) -> str:
        """Add a PCI function with the `ids` "vvvv:dddd" in the folder `under` (a bridge's, if any).

        `power` is its runtime status (None: a kernel without power management), `link` its PCIe
        link now and `max_link` at most, `drm` the minors of its card and render node.
        """
        folder = f"{under}/{address}"
        vendor, _, device = ids.partition(":")
        numbers = {"vendor": vendor, "device": device, "class": pci_class}
        if subsystem:
            owner, _, board = subsystem.partition(":")
            numbers |= {"subsystem_vendor": owner, "subsystem_device": board}
        self._attributes(folder, {name: f"0x{number}" for name, number in numbers.items()})
        self._attributes(folder, _link_files("current", link) | _link_files("max", max_link))
        self._attributes(folder, files)
        self._device("pci", address, folder, driver, power)
        self._nodes(folder, "drm", {"card": drm and drm[0], "renderD": drm and drm[1]})
        self._nodes(folder, "accel", {"accel": accel})
        return folder

    def bridge(
        self,
        address: str,
        ids: str = "1022:1480",
        *,
        under: str = ROOT_BUS,
        link: Link | None = None,
        max_link: Link | None = None,
    ) -> str:
        """Add a root port, or one end of a switch; returns the folder for what lies behind it."""
        return self.pci(
            address,
            ids,
            pci_class="060400",
            driver="pcieport",
            under=under,
            link=link,
            max_link=max_link,
        )

    def switch(self, uplink: Link, inner: Link = (16, 16.0), ids: str = "1000:c030") -> str:
        """Add a root port and a switch below it; returns the folder for a card behind the switch.

        The switch reaches the root port (0000:00:01.0) through `uplink`, cards through `inner`.
        Cards are on bus 3.
        """
        port = self.bridge("0000:00:01.0", link=uplink)
        upstream = self.bridge("0000:01:00.0", ids, under=port, link=uplink)
        return self.bridge("0000:02:00.0", ids, under=upstream, link=inner)

    def node(self, path: str, *compatibles: str, status: str | None = None) -> None:
        """Add a device-tree node ("" is the root's, which names the board)."""
        names = "".join(f"{name}\0" for name in compatibles)
        self.file(f"{DEVICE_TREE}{path}/compatible", names)
        if status:
            self.file(f"{DEVICE_TREE}{path}/status", f"{status}\0")

    def platform(
        self,
        name: str,
        node: str | None = None,
        *,
        driver: str | None = None,
        power: str | None = "active",
        render: int | None = None,
        **files: object,
    ) -> str:
        """Add a platform device, made of the device-tree node `node` if one is given."""
        folder = f"/sys/devices/platform/{name}"
        self._attributes(folder, files)
        if node:
            self.link(f"{folder}/of_node", DEVICE_TREE + node)
            self.file(f"{folder}/uevent", self._uevent(node))
        self._device("platform", name, folder, driver, power)
        self._nodes(folder, "drm", {"renderD": render})
        return folder

    def _uevent(self, node: str) -> str:
        """Return what the kernel tells udev of a device that was made of a node."""
        place = self.root / f"{DEVICE_TREE}{node}/compatible".lstrip("/")
        names = place.read_text().split("\0") if place.exists() else []
        lines = [f"OF_NAME={node.rpartition('/')[2].partition('@')[0]}", f"OF_FULLNAME={node}"]
        lines += [
            f"OF_COMPATIBLE_{number}={name}" for number, name in enumerate(filter(None, names))
        ]
        return "\n".join([*lines, ""])

    def _device(
        self, bus: str, name: str, folder: str, driver: str | None, power: str | None
    ) -> None:
        (self.root / folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
        if power is not None:
            self.file(f"{folder}/power/runtime_status", f"{power}\n")
        self.link(f"/sys/bus/{bus}/devices/{name}", folder)
        if driver:
            # The kernel links both ways: probers look from either end.
            self.link(f"{folder}/driver", f"/sys/bus/{bus}/drivers/{driver}")
            self.link(f"/sys/bus/{bus}/drivers/{driver}/{name}", folder)

    def _nodes(self, folder: str, kind: str, minors: dict[str, int | None]) -> None:
        for stem, minor in minors.items():
            if minor is not None:
                below = f"{folder}/{kind}/{stem}{minor}"
                # Major numbers of DRM and accel devices (Documentation/admin-guide/devices.txt).
                self.file(f"{below}/dev", f"{226 if kind == 'drm' else 261}:{minor}\n")
                self.link(f"{below}/device", folder)
                self.link(f"/sys/class/{kind}/{stem}{minor}", below)

    def _attributes(self, folder: str, files: dict[str, object] | dict[str, str]) -> None:
        for name, content in files.items():
            line = content if isinstance(content, bytes) else f"{content}\n"
            self.file(f"{folder}/{name.replace('__', '/')}", line)

    def _place(self, path: str) -> Path:
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        return place


def _link_files(which: str, link: Link | None) -> dict[str, object]:
    if link is None:
        return {}
    width, gts = link
    return {f"{which}_link_width": width, f"{which}_link_speed": f"{gts} GT/s PCIe"}
