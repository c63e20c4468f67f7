"""The device nodes of each driver outside of GPUs: one row for each, with its source.

Read where such a driver is bound: no GPU of NVIDIA, AMD or Intel needs it. A driver that stands in
no row is unknown, and its device is not called ready for being bound. What no source names is None.
Meta's MTIA has no row: nothing that is published names its driver's nodes.
"""

from __future__ import annotations

from probe_core.machine import decimal
from probe_core.machine.access import MISSING
from probe_core.readiness.scene import folder_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import DeviceDoc
    from probe_core.readiness.scene import Scene

__all__ = ["ROWS", "Row", "container_option", "group_of", "nodes_of", "row_of"]


# Engines that take Docker's options; the others have words of their own.
_LIKE_DOCKER = ("", "docker", "podman", "oci", "rkt", "container")


class Row:
    """What the programs of one driver open.

    `drivers` are names in /sys/bus/pci/drivers, one that ends with ``*`` a beginning; `vendor` is
    whose devices are meant where others use the driver, too. `shared` nodes are one for all
    devices. A device's own node has the number that the kernel gave it: `index` maps a label of
    ``node_index`` to paths, `classes` a folder below the device in /sys to where its entries lie in
    /dev, `iommu_group` says that VFIO's group is the number. `patterns` are the forms of a device's
    own node where /sys does not link it to the device; ``#`` stands for the number.

    `group` may open the nodes as the vendor's package sets them up. `container` is how a container
    of these `engines` is given the device. `source` says where this is from.
    """

    __slots__ = (
        "classes",
        "container",
        "drivers",
        "engines",
        "group",
        "index",
        "iommu_group",
        "maker",
        "name",
        "patterns",
        "shared",
        "source",
        "vendor",
    )

    def __init__(
        self,
        maker: str,
        name: str,
        *drivers: str,
        source: str,
        container: str,
        engines: tuple[str, ...] = _LIKE_DOCKER,
        vendor: str = "",
        shared: tuple[str, ...] = (),
        index: tuple[tuple[str, str], ...] = (),
        classes: tuple[tuple[str, str], ...] = (),
        iommu_group: bool = False,
        patterns: tuple[str, ...] = (),
        group: str | None = None,
    ) -> None:
        self.maker = maker
        self.name = name
        self.drivers = drivers
        self.vendor = vendor
        self.shared = shared
        self.index = index
        self.classes = classes
        self.iommu_group = iommu_group
        self.patterns = patterns
        self.group = group
        self.container = container
        self.engines = engines
        self.source = source


_ACCEL = ("accel", "/dev/accel/accel#")
_RENDER = ("drm_render", "/dev/dri/renderD#")

ROWS = (
    Row(
        "ascend",
        "Huawei Ascend",
        # `lspci -k` of an Atlas card; its modules are drv_* and ascend_*.
        "devdrv_device_driver",
        "devdrv*",
        "drv_*",
        shared=("/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc"),
        patterns=("/dev/davinci#",),
        group="HwHiAiUser",
        container="`--device=/dev/davinci0 --device=/dev/davinci_manager --device=/dev/devmm_svm"
        " --device=/dev/hisi_hdc -v /usr/local/Ascend/driver:/usr/local/Ascend/driver`, or with"
        " Ascend's runtime `-e ASCEND_VISIBLE_DEVICES=0`",
        source="hiascend.com, CANN: Docker; `ls -l` of ascend-device-plugin: 0660, HwHiAiUser",
    ),
    Row(
        "cambricon",
        "Cambricon MLU",
        # `lspci -k` of an MLU220; its module is cambricon_drv.
        "cambricon-pci-drv",
        "cambricon*",
        shared=("/dev/cambricon_ctl",),
        patterns=("/dev/cambricon_dev#",),
        container="`--device=/dev/cambricon_dev0 --device=/dev/cambricon_ctl`",
        source="the container lines of Cambricon's MagicMind and CNStream; no source names a group",
    ),
    Row(
        "gaudi",
        "Intel Gaudi",
        "habanalabs",
        # The control device beside it, accel_controlD0, is for tools that watch (hl-smi).
        index=(_ACCEL,),
        classes=(("habanalabs", "/dev/"),),  # before Linux 6.6: hl0
        patterns=("/dev/accel/accel#", "/dev/hl#"),
        container="`docker run --runtime=habana -e HABANA_VISIBLE_DEVICES=all`, or"
        " `--device=/dev/accel/accel0 --device=/dev/accel/accel_controlD0`",
        engines=("docker",),
        source="linux drivers/accel/habanalabs; Intel's resource driver for Gaudi. The group is"
        " udev's for the class accel",
        group="render",
    ),
    Row(
        "neuron",
        "AWS Neuron",
        # neuron_pci.c; its module is neuron.
        "neuron-driver",
        "neuron",
        # Its class devices are virtual: /sys links them to no PCI device.
        patterns=("/dev/neuron#",),
        container="`--device=/dev/neuron0`",
        source="aws-neuron-driver, neuron_pci.c and its udev rule: 0666; Neuron's documentation,"
        ' "Containers"',
    ),
    Row(
        "tpu",
        "Google TPU",
        "vfio-pci",
        vendor="google",
        shared=("/dev/vfio/vfio",),
        iommu_group=True,
        patterns=("/dev/vfio/#",),
        container="`--privileged`",
        source="docs.cloud.google.com/tpu, custom-os-image (vfio-pci from v5e on) and"
        " run-in-container; vfio.rst: the group's number. No source names a group of users",
    ),
    Row(
        "tenstorrent",
        "Tenstorrent",
        "tenstorrent",
        classes=(("tenstorrent", "/dev/"),),  # tenstorrent!0 stands for a folder
        patterns=("/dev/tenstorrent/#",),
        container="`--device=/dev/tenstorrent -v /dev/hugepages-1G:/dev/hugepages-1G`",
        source="tt-kmd, README.md and udev-50-tenstorrent.rules: 0666; tt-metal's docker lines",
    ),
    Row(
        "hailo",
        "Hailo-8",
        "hailo",
        "hailo_pci",
        classes=(("hailo_chardev", "/dev/"),),
        patterns=("/dev/hailo#",),
        container="`--device=/dev/hailo0`",
        source="hailort-drivers, linux/pcie and 51-hailo-udev.rules: 0666",
    ),
    Row(
        "hailo-10",
        "Hailo-10H",
        "hailo1x*",
        # The class has been hailo1x, and the node h1x-0, since HailoRT 5.3.
        classes=(("hailo1x", "/dev/"), ("hailo_chardev", "/dev/")),
        patterns=("/dev/h1x-#", "/dev/hailo#"),
        container="`--device=/dev/h1x-0`, before HailoRT 5.3 `--device=/dev/hailo0`",
        source="hailort-drivers 5: module hailo1x_pci; HailoRT 5.3 renamed class and node",
    ),
    Row(
        "coral",
        "Coral Edge TPU",
        "apex",
        "gasket",
        classes=(("apex", "/dev/"),),
        patterns=("/dev/apex_#",),
        group="apex",
        container="`--device=/dev/apex_0`",
        source="gasket-driver, apex_driver.c; coral.ai, M.2 and Mini PCIe: 65-apex.rules, 0660",
    ),
    Row(
        "coral-usb",
        "Coral USB Accelerator",  # no kernel driver: libedgetpu opens the device itself
        patterns=("/dev/bus/usb/#",),
        group="plugdev",
        # Its number changes as the first program loads its firmware: 1a6e:089a becomes 18d1:9302.
        container="`-v /dev/bus/usb:/dev/bus/usb --device-cgroup-rule='c 189:* rmw'`",
        source="libedgetpu's udev rules; coral.ai, USB Accelerator; devices.txt: 189 is USB's",
    ),
    Row(
        "xdna",
        "AMD XDNA",
        "amdxdna",
        index=(_ACCEL,),
        patterns=("/dev/accel/accel#",),
        group="render",
        container="`--device=/dev/accel/accel0 --ulimit memlock=-1`",
        source="linux Documentation/accel/amdxdna; udev's 50-udev-default.rules: accel is render's",
    ),
    Row(
        "intel-npu",
        "Intel NPU",
        "intel_vpu",
        index=(_ACCEL,),
        patterns=("/dev/accel/accel#",),
        group="render",
        container="`--device=/dev/accel/accel0 --group-add $(stat -c %g /dev/accel/accel0)`",
        source="linux drivers/accel/ivpu; linux-npu-driver, docs/overview.md: group render",
    ),
    Row(
        "qaic",
        "Qualcomm Cloud AI 100",
        "qaic",
        index=(_ACCEL,),
        patterns=("/dev/accel/accel#", "/dev/qaic_aic100_#"),
        group="render",
        container="`--device=/dev/accel/accel0`, of older drivers `--device=/dev/qaic_aic100_0`",
        source="linux drivers/accel/qaic; docs.qualcomm.com 80-99100-3. The group is udev's for"
        " the class accel",
    ),
    Row(
        "xrt",
        "AMD Alveo and Versal (XRT)",
        "xocl",
        index=(_RENDER,),
        patterns=("/dev/dri/renderD#",),
        group="render",
        # The management function's driver, xclmgmt, has a node of its own, for tools that flash.
        container="`--device=/dev/dri/renderD128`, and for tools that flash its /dev/xclmgmtNUMBER",
        source="XRT's documentation: xocl drives the user function, xclmgmt the management one",
    ),
    Row(
        "biren",
        "Biren",
        "biren",  # the module's name, see /sys/class/biren/card_0/device
        shared=("/dev/biren-m",),
        classes=(("biren", "/dev/biren/"),),
        patterns=("/dev/biren/card_#",),
        container="`--device=/dev/biren-m --device=/dev/biren/card_0`, or Biren's runtime",
        source="Biren's container toolkit as scripts use it; no source names a group",
    ),
    Row(
        "moorethreads",
        "Moore Threads",
        "mtgpu",
        index=(_RENDER,),
        patterns=("/dev/mtgpu.#",),
        group="video",
        container="Moore Threads' runtime with `-e MTHREADS_VISIBLE_DEVICES=all`, or"
        " `--device=/dev/mtgpu.0 --device=/dev/dri`",
        source="docs.mthreads.com, container toolkit; FlagOS, docker lines for mthreads",
    ),
    Row(
        "iluvatar",
        "Iluvatar CoreX",
        "iluvatar",
        patterns=("/dev/iluvatar#",),
        container="`--device=/dev/iluvatar0 -v /usr/local/corex:/usr/local/corex`",
        source="ix-device-plugin (/sys/bus/pci/drivers/iluvatar); FlagOS, docker lines: no control"
        " node. 0666 where seen",
    ),
    Row(
        "metax",
        "MetaX",
        "metax*",  # the module's name, see MetaX's own advice `modprobe metax`
        shared=("/dev/mxcd",),
        index=(_RENDER,),
        patterns=("/dev/dri/renderD#",),
        group=None,
        container="`--device=/dev/mxcd --device=/dev/dri --group-add video`",
        source="vllm-metax and MetaX's device plugin: mxcd and dri",
    ),
    Row(
        "hygon",
        "Hygon DCU",
        "hydcu*",
        shared=("/dev/kfd", "/dev/mkfd"),
        index=(_RENDER,),
        patterns=("/dev/dri/renderD#",),
        group=None,
        container="`--device=/dev/kfd --device=/dev/mkfd --device=/dev/dri --group-add video"
        " -v /opt/hyhal:/opt/hyhal`",
        source="Hygon's DCU documentation and dcu-exporter; `lspci -k`: hydcu",
    ),
    Row(
        "rebellions",
        "Rebellions",
        "rebellions",
        patterns=("/dev/rbln#",),
        # Servers without a group of cards have no /dev/rsdN: no program is known to need it.
        container="CDI: `--device rebellions.ai/npu=all`, which brings /dev/rblnN and /dev/rsdN",
        source="rbln-k8s-device-plugin (/sys/bus/pci/drivers/rebellions) and its CDI generator;"
        " no source names a group",
    ),
    Row(
        "furiosa",
        "FuriosaAI RNGD",
        "furiosa_rngd",
        # A container may be given some of the processing elements (npu0pe0 …): each has its own.
        patterns=("/dev/rngd/npu#mgmt",),
        container="`--device=/dev/rngd`, all of it, or Furiosa's CDI specification",
        source="Furiosa's device plugin and CDI code; `lspci -k`: furiosa_rngd. No source names a"
        " group",
    ),
)
"""Every driver whose nodes are known, beside those of GPUs in `readiness.node`."""


def row_of(driver: str | None, vendor: str | None) -> Row | None:
    """Return the row of a driver that holds a device of `vendor`."""
    if driver is None:
        return None
    return next((row for row in ROWS if _is_of(row, driver, vendor)), None)


def _is_of(row: Row, driver: str, vendor: str | None) -> bool:
    if row.vendor and row.vendor != vendor:
        return False
    return any(
        driver.startswith(name[:-1]) if name.endswith("*") else driver == name
        for name in row.drivers
    )


def group_of(path: str) -> str | None:
    """Return the group that a vendor's package gives a node to; None where no source names one."""
    for row in ROWS:
        for form in (*row.shared, *row.patterns):
            stem, _, end = form.partition("#")
            if path == form or (path.startswith(stem) and path.endswith(end) and "#" in form):
                return row.group
    return None


def container_option(device: DeviceDoc, scene: Scene) -> str | None:
    """Return how a container of this engine is given a device; None where no row has that.

    The rows have the options of Docker and podman, which are the same.
    """
    if device["id"].startswith("usb:"):
        row = next((row for row in ROWS if not row.drivers), None)
    else:
        row = row_of(scene.driver(device), device["vendor"])
    if row is None or (scene.container or "") not in row.engines:
        return None
    is_known = scene.container in ("docker", "podman") and row.container.startswith("`-")
    return f"`{scene.container} run {row.container[1:]}" if is_known else row.container


def nodes_of(row: Row, device: DeviceDoc, scene: Scene) -> tuple[list[str], str]:
    """Return the nodes of a device, and why its own is not among them ("" where it is).

    Where nodes of several devices look alike, and not all of them may be opened, which of them is
    this device's is not known: it is not guessed by order.
    """
    index, folder = device.get("node_index") or {}, folder_of(device) or ""
    paths = [*row.shared]
    paths += [form.replace("#", str(index[label])) for label, form in row.index if label in index]
    own = _linked(row.classes, folder, scene)
    if row.iommu_group:
        group = scene.machine.readlink(f"{folder}/iommu_group").rpartition("/")[2]
        own += [f"/dev/vfio/{group}"] if decimal(group) is not None else []
    is_named = bool(own) or any(path in paths for path in _filled(row, index))
    if is_named or not row.patterns:
        return [*paths, *own], ""
    alike, reason = _alike(row, device, scene)
    return [*paths, *alike], reason


def linked(device: DeviceDoc, scene: Scene) -> list[str]:
    """Return the nodes that /sys links to a device whose driver has another name than a row's."""
    folder = folder_of(device)
    if folder is None:
        return []
    classes = dict(pair for row in ROWS for pair in row.classes)
    return _linked(tuple(classes.items()), folder, scene)


def _linked(classes: tuple[tuple[str, str], ...], folder: str, scene: Scene) -> list[str]:
    return [
        root + name.replace("!", "/")
        for kind, root in classes
        for name in scene.machine.listdir(f"{folder}/{kind}")[:2]
        if ".." not in name and "control" not in name
    ]


def _filled(row: Row, index: dict[str, int]) -> list[str]:
    """Return the forms of a device's own node with the numbers of its ``node_index``."""
    numbers = [str(index[label]) for label, _ in row.index if label in index]
    return [form.replace("#", number) for form in row.patterns for number in numbers]


def _links(row: Row) -> bool:
    """Return whether /sys tells which node is a device's own."""
    by_index = any(form in row.patterns for _, form in row.index)
    return by_index or bool(row.classes) or row.iommu_group


def _alike(row: Row, device: DeviceDoc, scene: Scene) -> tuple[list[str], str]:
    """Return the nodes of the row's form, as far as this device's is among them for sure."""
    peers = scene.peers(device)
    place = peers.index(device["id"]) if device["id"] in peers else 0
    found = next(filter(None, (_there(form, scene) for form in row.patterns)), [])
    if not found:
        # A driver that links its nodes and shows none may not have made them yet.
        if _links(row) and scene.container is None and scene.shows_nodes:
            return [], "nothing in /sys names its node"
        return [row.patterns[0].replace("#", str(place))], ""
    states = {scene.access(path) for path in found}
    if len(found) >= len(peers) and len(states) == 1:
        return [found[place]], ""
    number = f"{len(found)} nodes like {found[0]} for {len(peers)} devices"
    return [], f"{number}: which of them is its own is not known"


def _there(form: str, scene: Scene) -> list[str]:
    """Return the nodes of a form, by number."""
    folder, _, name = form.rpartition("/")
    stem, _, end = name.partition("#")
    names = {path.rpartition("/")[2] for path in scene.machine.access if path.startswith(folder)}
    numbers = set()
    for entry in names.union(scene.machine.listdir(folder)):
        if entry.startswith(stem) and entry.endswith(end):
            number = decimal(entry[len(stem) : len(entry) - len(end)])
            if number is not None:
                numbers.add(number)
    paths = (f"{folder}/{stem}{number}{end}" for number in sorted(numbers))
    return [path for path in paths if scene.access(path) != MISSING]
