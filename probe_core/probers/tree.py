"""Tells which nodes of the device tree are GPUs and NPUs, and describes their platform devices."""

from __future__ import annotations

from probe_core.sysfs import devicetree, drivers, power
from probe_core.sysfs.nodes import paths as paths_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from probe_core.machine import Machine
    from probe_core.model.document import Kind, Sighting


# Compatible's beginning → (kind, vendor). From the kernel's device-tree bindings.
_STEMS: tuple[tuple[str, Kind, str], ...] = (
    ("arm,mali", "gpu", "arm"),
    ("qcom,adreno", "gpu", "qualcomm"),
    ("qcom,kgsl-3d0", "gpu", "qualcomm"),  # Qualcomm's own driver, kgsl
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


_KGSL = "kgsl/kgsl-3d0"
"""Class device of Qualcomm's own driver; its gpu_model comes from a table, and wakes nothing."""


class TreeCandidate:
    """A platform device whose node is a GPU's or an NPU's: the node's path and compatibles."""

    def __init__(
        self, path: str, folder: str, compatibles: list[str], kind: Kind, vendor: str
    ) -> None:
        self.path = path
        self.folder = folder
        self.compatibles = compatibles
        self.kind = kind
        self.vendor = vendor


def tree_candidates(machine: Machine) -> list[TreeCandidate]:
    """Return the platform devices that a GPU or NPU node of the tree describes, by node."""
    nodes: dict[str, TreeCandidate] = {}
    for path, folder in devicetree.platform_devices(machine):
        names = devicetree.compatibles(machine, path, folder)
        match = _match(names)
        if path not in nodes and match and devicetree.enabled(machine, path):
            nodes[path] = TreeCandidate(path, folder, names, *match)
    return _without_parts([nodes[path] for path in sorted(nodes)])


def describe_tree(
    machine: Machine, nodes: list[TreeCandidate], minors: Mapping[str, dict[str, int]]
) -> list[Sighting]:
    """Return a sighting for each of the `nodes`; the cores of a Rockchip NPU are one device.

    `minors` are the DRM and accel minors of all devices, by their real folders.
    """
    return _as_one_npu([_sighting(machine, node, minors) for node in nodes])


def _sighting(
    machine: Machine, node: TreeCandidate, minors: Mapping[str, dict[str, int]]
) -> Sighting:
    index = dict(minors.get(machine.realpath(node.folder), {}))
    if machine.exists(f"{node.folder}/misc/mali0"):
        index["mali"] = 0
    sighting: Sighting = {
        "ids": [f"dt:{node.path}"],
        "kind": node.kind,
        "vendor": node.vendor,
        "dt": node.compatibles,
        "memory": {"kind": "unified"},
        "node_index": index,
        "links": [],
    }
    if any(name.endswith("-rknn-core") for name in node.compatibles):
        sighting["units"] = 1  # mainline Linux has a node per core of Rockchip's NPU
    if node.kind == "gpu":
        # The board's own compatibles say which module a GPU node sits in, where the node says no
        # more than the SoC: every Orin has "nvidia,ga10b", with 8 to 16 units.
        sighting["dt"] = [*devicetree.board(machine), *node.compatibles]
    if driver := drivers.bound(machine, node.folder):
        sighting["driver"] = {"name": driver}
        if paths := _nodes(machine, node.folder, index):
            sighting["nodes"] = paths
    if name := machine.read(f"{node.folder}/{_KGSL}/gpu_model", 64):
        # "Adreno650v2" is the second revision of the 650; a third one is a GPU of its own.
        sighting["name"] = name.removesuffix("v1").removesuffix("v2")
    status = power.status(machine, node.folder)
    if status in power.TOLD:
        sighting["power_state"] = status
    return sighting


def _nodes(machine: Machine, folder: str, index: Mapping[str, int]) -> list[str]:
    return paths_of(index) or (["/dev/kgsl-3d0"] if machine.exists(f"{folder}/{_KGSL}") else [])


def _match(names: list[str]) -> tuple[Kind, str] | None:
    for name in names:
        for stem, kind, vendor in _STEMS:
            if name.startswith(stem):
                return kind, vendor
    return None


def _as_one_npu(sightings: list[Sighting]) -> list[Sighting]:
    """Join the cores of an NPU that the tree lists one by one (Rockchip's, in mainline Linux).

    The driver makes one accel node of them, and the chip's figures are for all of them together.
    """
    cores = [sighting for sighting in sightings if sighting["dt"][0].endswith("-rknn-core")]
    if not cores:
        return sightings
    cores.sort(key=lambda core: not core["node_index"])  # the first core carries the accel node
    whole: Sighting = {**cores[0], "units": len(cores)}
    return [sighting for sighting in sightings if sighting not in cores] + [whole]


def _without_parts(nodes: list[TreeCandidate]) -> list[TreeCandidate]:
    """Leave out nodes below another candidate's: a GPU's own power or memory sub-nodes."""
    paths = [node.path for node in nodes]
    return [node for node in nodes if not any(node.path.startswith(f"{path}/") for path in paths)]
