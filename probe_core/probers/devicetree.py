"""GPU and NPU nodes of the device tree, and platform devices with a DRM or accel node."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from probe_core.machine import Machine

__all__ = ["compatibles", "devices", "node_path"]

TREE = "/sys/firmware/devicetree/base"
PLATFORM = "/sys/bus/platform/devices"

# Compatible's beginning → (kind, vendor). From the kernel's device-tree bindings.
_GPU_STEMS = (
    ("arm,mali", "gpu", "arm"),
    ("qcom,adreno", "gpu", "qualcomm"),
    ("brcm,2711-v3d", "gpu", "broadcom"),
    ("brcm,2712-v3d", "gpu", "broadcom"),
    ("brcm,bcm2835-v3d", "gpu", "broadcom"),
    ("brcm,7268-v3d", "gpu", "broadcom"),
    ("brcm,7278-v3d", "gpu", "broadcom"),
    ("vivante,gc", "gpu", "vivante"),
    ("img,img-", "gpu", "imagination"),
    ("img,powervr", "gpu", "imagination"),
    ("apple,agx-", "gpu", "apple"),
    ("nvidia,gv11b", "gpu", "nvidia"),
    ("nvidia,gp10b", "gpu", "nvidia"),
    ("nvidia,gm20b", "gpu", "nvidia"),
    ("nvidia,ga10b", "gpu", "nvidia"),
    ("nvidia,gk20a", "gpu", "nvidia"),
    ("nvidia,tegra234-nvdla", "npu", "nvidia"),
    ("rockchip,rknpu", "npu", "rockchip"),
    ("rockchip,rk3588-rknn-core", "npu", "rockchip"),
    ("rockchip,rk3588-rknpu", "npu", "rockchip"),
    ("rockchip,rk3568-rknpu", "npu", "rockchip"),
    ("rockchip,rk3576-rknpu", "npu", "rockchip"),
    ("rockchip,rk3399pro-npu", "npu", "rockchip"),
    ("amlogic,meson-npu", "npu", "amlogic"),
    ("arm,ethos-u", "npu", "arm"),
    ("arm,ethosu", "npu", "arm"),
    ("ti,c7x", "npu", "ti"),
)


def devices(machine: Machine, nodes: Mapping[str, dict[str, int]]) -> list[dict[str, Any]]:
    """Return a sighting for each platform device that a GPU or NPU node of the tree describes."""
    found: dict[str, dict[str, Any]] = {}
    for name in machine.listdir(PLATFORM):
        folder = f"{PLATFORM}/{name}"
        path = node_path(machine, folder)
        if path is None or path in found:
            continue
        sighting = _sighting(machine, path, folder, nodes)
        if sighting:
            found[path] = sighting
    return _as_one_npu(_without_parts([found[path] for path in sorted(found)]))


def node_path(machine: Machine, device: str) -> str | None:
    """Return the device-tree path of a device in /sys ("/soc/gpu@fb000000"), None without one."""
    real = machine.realpath(f"{device}/of_node") if machine.exists(f"{device}/of_node") else ""
    return real.removeprefix(TREE) if real.startswith(TREE + "/") else None


def compatibles(machine: Machine, path: str) -> list[str]:
    """Return a node's compatibles, most specific first; the file holds them NUL-separated."""
    text = machine.read(f"{TREE}{path}/compatible", 4096) or ""
    return [part for part in text.split("\0") if part]


def _sighting(
    machine: Machine, path: str, folder: str, nodes: Mapping[str, dict[str, int]]
) -> dict[str, Any] | None:
    names = compatibles(machine, path)
    match = _match(names)
    if match is None or machine.read(f"{TREE}{path}/status", 32) == "disabled":
        return None
    kind, vendor = match
    real = machine.realpath(folder)
    index = dict(nodes.get(real, {}))
    if machine.exists(f"{folder}/misc/mali0"):
        index["mali"] = 0
    sighting: dict[str, Any] = {
        "ids": [f"dt:{path}"],
        "kind": kind,
        "vendor": vendor,
        "dt": names,
        "memory": {"kind": "unified"},
        "node_index": index,
        "links": [],
    }
    if any(name.endswith("-rknn-core") for name in names):
        sighting["units"] = 1  # mainline Linux has a node per core of Rockchip's NPU
    if kind == "gpu":
        # The board's own compatibles say which module a GPU node sits in, where the node says no
        # more than the SoC: every Orin has "nvidia,ga10b", with 8 to 16 units.
        sighting["dt"] = [*compatibles(machine, ""), *names]
    if machine.exists(f"{folder}/driver"):
        sighting["driver"] = {"name": machine.realpath(f"{folder}/driver").rpartition("/")[2]}
    power = machine.read(f"{folder}/power/runtime_status", 32)
    if power in ("active", "suspended", "suspending", "resuming"):
        sighting["power_state"] = power
    return sighting


def _match(names: list[str]) -> tuple[str, str] | None:
    for name in names:
        for stem, kind, vendor in _GPU_STEMS:
            if name.startswith(stem):
                return kind, vendor
    return None


def _as_one_npu(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join the cores of an NPU that the tree lists one by one (Rockchip's, in mainline Linux).

    The driver makes one accel node of them, and the chip's figures are for all of them together.
    """
    cores = [one for one in found if one["dt"][0].endswith("-rknn-core")]
    if not cores:
        return found
    cores.sort(key=lambda one: not one["node_index"])  # the first core carries the accel node
    whole = {**cores[0], "units": len(cores)}
    return [one for one in found if one not in cores] + [whole]


def _without_parts(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out nodes below another found node: a GPU's own power or memory sub-nodes."""
    paths = [one["ids"][0] for one in found]
    return [
        one
        for one in found
        if not any(one["ids"][0].startswith(path + "/") for path in paths if path != one["ids"][0])
    ]
