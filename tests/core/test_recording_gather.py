"""`gather` keeps all that a report needs, and nothing that wakes a device or says whose it is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import recorded
from reports import plugin, report_of
from trees import Tree
from weights import mostly_heavy

from probe_core import Machine
from probe_core.recording import open_machine, unpack
from probe_core.recording.anonymise import Anonymiser
from probe_core.recording.declared import check_records, own_declarations
from probe_core.recording.document import parse, write
from probe_core.recording.gather import VARIABLES, Gathered
from probe_core.recording.gather import gather as gather_declared
from probe_core.visibility import see

NAMES = recorded.names()
WITH_PLUGIN = [(name, who) for name in NAMES for who in recorded.read(name).get("with", ())]
CARD = "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0"


IDENTITY = {
    *("class", "vendor", "device", "subsystem_vendor", "subsystem_device", "revision"),
    *("numa_node", "power/runtime_status"),
}
"""Files of a PCI device that the kernel answers by itself."""


class Plain(Anonymiser):
    """Replaces nothing, so that reports can be compared."""

    def digits(self, text: str) -> str:
        return text


def gather(machine: Machine, origin: str, anonymiser: Anonymiser | None = None) -> Gathered:
    """Record what the core and the repository's own plugins read."""
    return gather_declared(machine, origin, recorded.declarations(), anonymiser)


def settled(document: dict[str, Any]) -> dict[str, Any]:
    """Return a report without what differs from run to run."""
    outcomes = [{**one, "elapsed_ms": 0} for one in document["outcomes"]]
    return {**document, "outcomes": outcomes, "timings_ms": {}}


def again(machine: Machine, folder: Path) -> Machine:
    """Record a machine, write and read the recording, and return the machine that it is."""
    made = parse(write(gather(machine, "recorded again", Plain()).recording).encode())
    return Machine(unpack(made, str(folder)), made.environ, made.os, made.arch)


@pytest.mark.parametrize("name", mostly_heavy(NAMES, 12))
def test_recording_of_a_recorded_machine_gives_the_same_report(name: str, tmp_path: Path) -> None:
    with open_machine(str(recorded.path(name))) as machine:
        first, second = report_of(machine), report_of(again(machine, tmp_path / "again"))
    assert settled(first) == settled(second)


@pytest.mark.heavy
@pytest.mark.parametrize(("name", "who"), WITH_PLUGIN)
def test_the_same_with_its_plugin(name: str, who: str, tmp_path: Path) -> None:
    with open_machine(str(recorded.path(name))) as machine:
        first = report_of(machine, **plugin(who))
        second = report_of(again(machine, tmp_path / "again"), **plugin(who))
    assert settled(first) == settled(second)


class Watched(Machine):
    """Notes which files were read."""

    __slots__ = ("opened",)

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.opened: list[str] = []

    def read_bytes(self, path: str, limit: int = 1 << 20) -> bytes:
        self.opened.append(self.realpath(path))
        return super().read_bytes(path, limit)


class Live(Watched):
    """Counts as this machine, and reads below its folder all the same."""

    __slots__ = ()

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.live = True

    def path(self, path: str) -> str:
        return self.root + path

    def realpath(self, path: str) -> str:
        return super().realpath(path).removeprefix(self.root)


def card(tree: Tree, power: str, **files: str) -> Watched:
    """Write an awake bridge and a GPU behind it."""
    bridge = CARD.rpartition("/")[0]
    tree.file(f"{bridge}/class", "0x060400\n")
    tree.file(f"{bridge}/current_link_speed", "16.0 GT/s PCIe\n")
    named = {"class": "0x030000", "vendor": "0x1002", "device": "0x744c", **files}
    named |= {"power/runtime_status": power, "current_link_width": "16"}
    named |= dict.fromkeys(IDENTITY - set(named), "1")
    named |= {"mem_info_vram_total": "25753026560", "product_name": "x", "serial_number": "12345"}
    for name, text in named.items():
        tree.file(f"{CARD}/{name}", f"{text}\n")
    tree.link("/sys/bus/pci/devices/0000:00:01.0", bridge)
    tree.link("/sys/bus/pci/devices/0000:01:00.0", CARD)
    return Watched(str(tree.root))


@pytest.mark.parametrize("power", ["suspended", "suspending", "resuming"])
def test_sleeping_device_is_not_woken(power: str, tree: Tree) -> None:
    machine = card(tree, power)
    found = gather(machine, "recorded")
    names = {path.removeprefix(f"{CARD}/") for path in machine.opened if path.startswith(CARD)}
    assert names == IDENTITY
    assert found.asleep == ["0000:01:00.0"]
    assert f"{CARD.rpartition('/')[0]}/current_link_speed" in found.recording.files


@pytest.mark.parametrize("power", ["suspended", "active"])
def test_what_the_kernel_keeps_of_a_sleeping_device_is_read(power: str, tree: Tree) -> None:
    kept = {"resource": "0x0 0x0 0x0", "aer_dev_fatal": "TOTAL_ERR_FATAL 0"}
    nodes = dict.fromkeys(
        (f"{name}/0/dev" for name in ("hailo_chardev", "apex", "tenstorrent", "biren",
                                      "habanalabs", "hailo1x")), "1:2"
    )  # fmt: skip
    sizes = dict.fromkeys((f"resource{number}_resize" for number in range(3)), "0300")
    machine = card(tree, power, **kept, **nodes, **sizes, current_link_speed="16.0 GT/s PCIe")
    held = gather(machine, "recorded").recording.files
    found = {name for name in (*kept, *nodes, *sizes) if f"{CARD}/{name}" in held}
    # The possible sizes are read from the device.
    assert found == {*kept, *nodes, *(sizes if power == "active" else ())}


@pytest.mark.parametrize(("power", "read"), [("suspended", False), ("active", True)])
def test_a_drivers_own_file_about_a_sleeping_device_is_not_read(
    power: str, read: bool, tree: Tree
) -> None:
    """NVIDIA's driver from 515 up to 590 resumes a GPU to answer for this file."""
    path = "/proc/driver/nvidia/gpus/0000:01:00.0/information"
    machine = Live(card(tree, power).root)
    tree.file(path, "Model: \t\t NVIDIA GeForce RTX 4060\n")
    declared, mistakes = check_records({"files": ["/proc/driver/nvidia/gpus/*/information"]})
    assert mistakes == []
    found = gather_declared(machine, "recorded", [*own_declarations(), declared])
    assert (path in machine.opened, path in found.recording.files) == (read, read)
    assert found.asleep == ([] if read else ["0000:01:00.0"])


@pytest.mark.parametrize("power", ["active", "unsupported"])
def test_device_that_is_awake_is_read_but_for_its_serial_number(power: str, tree: Tree) -> None:
    found = gather(card(tree, power), "recorded")
    assert found.asleep == []
    assert found.recording.files[f"{CARD}/mem_info_vram_total"] == b"25753026560\n"
    assert f"{CARD}/serial_number" not in found.recording.files
    assert found.recording.links == {
        "/sys/bus/pci/devices/0000:00:01.0": "../../../devices/pci0000:00/0000:00:01.0",
        "/sys/bus/pci/devices/0000:01:00.0": (
            "../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0"
        ),
    }


@pytest.mark.parametrize(("status", "asked"), [("Operational", True), ("Malfunction", False)])
def test_firmware_is_asked_of_a_working_gaudi_alone(status: str, asked: bool, tree: Tree) -> None:
    machine = card(tree, "active", vendor="0x1da3", status=status, clk_max_freq_mhz="1650")
    gather(machine, "recorded")
    assert (f"{CARD}/clk_max_freq_mhz" in machine.opened) is asked


def test_driver_files_of_other_devices_are_not_read(tree: Tree) -> None:
    machine = card(tree, "active", **{"class": "0x020000", "status": "up"})
    gather(machine, "recorded")
    own = [path for path in machine.opened if path.startswith(CARD) and "/power/" not in path]
    assert not any(path.endswith(("status", "product_name")) for path in own)


UUID = "GPU-9942190a-aa31-4ff1-4aa9-c388d80f85f1"


def identified(tree: Tree) -> Machine:
    tree.file(
        "/proc/cpuinfo", "processor\t: 0\n\nHardware\t: BCM2712\nSerial\t\t: 10000000abcdef\n"
    )
    tree.file("/proc/driver/nvidia/gpus/0000:01:00.0/information", f"GPU UUID: \t {UUID}\n")
    node = "/sys/class/kfd/kfd/topology/nodes/1"
    tree.file(f"{node}/properties", "simd_count 8\nunique_id 11068034305583089049\n")
    tree.file("/proc/self/cgroup", "0::/user.slice/bob.scope\n7:pids:/bob\n")
    tree.file("/sys/fs/cgroup/user.slice/bob.scope/memory.max", "1024\n")
    environ = {
        "CUDA_VISIBLE_DEVICES": f"{UUID},GPU-9942,MIG-{UUID[4:]},MIG-{UUID}/1/0,0",
        "ROCR_VISIBLE_DEVICES": "GPU-99998e8f5a1e0599",
        "VK_DRIVER_FILES": "/home/bob/nvidia_icd.json",
        "HOME": "/home/bob",
        "SECRET": "token",
    }
    return Machine(str(tree.root), environ)


@pytest.mark.parametrize(
    ("written", "refused"),
    [("7\x1f", False), ("9" * 5000, True), ("zz", True), ("\t7", False), ("", True)],
)
def test_an_odd_number_of_hardware_is_no_way_around_the_mask(
    tree: Tree, written: str, refused: bool
) -> None:
    path = "/sys/class/kfd/kfd/topology/nodes/1/properties"
    tree.file(path, f"unique_id {written}\nsimd_count 8\n")
    recording = gather(Machine(str(tree.root)), "recorded").recording
    first, second = recording.files[path].decode().splitlines()
    assert (first == "unique_id 0", second) == (refused, "simd_count 8")
    assert not written or written not in first


def test_nothing_says_whose_machine_it_is(tree: Tree) -> None:
    text = write(gather(identified(tree), "recorded").recording)
    for word in ("bob", "token", "abcdef", "GPU-9942", "9942190a", "11068034305583089049", "pids"):
        assert word not in text
    files = json.loads(text)["files"]
    assert files["/proc/cpuinfo"] == ["processor\t: 0", "", "Hardware\t: BCM2712"]
    assert files["/proc/self/cgroup"] == "0::/user.slice/group2\n"
    assert files["/sys/fs/cgroup/user.slice/group2/memory.max"] == "1024\n"


def test_masks_still_name_the_same_devices(tree: Tree) -> None:
    found = gather(identified(tree), "recorded").recording
    text = found.files["/proc/driver/nvidia/gpus/0000:01:00.0/information"].decode()
    uuid = text.split()[-1]
    assert (len(uuid), uuid[:4], uuid[12]) == (len(UUID), "GPU-", "-")
    whole, start, mig, old, number = found.environ["CUDA_VISIBLE_DEVICES"].split(",")
    assert (whole, mig, old, number) == (uuid, f"MIG-{uuid[4:]}", f"MIG-{uuid}/1/0", "0")
    assert uuid.startswith(start)
    properties = found.files["/sys/class/kfd/kfd/topology/nodes/1/properties"].decode()
    unique = int(properties.split()[-1])
    assert found.environ["ROCR_VISIBLE_DEVICES"] == f"GPU-{unique:016x}"
    assert found.environ["VK_DRIVER_FILES"] == "/home/nvidia_icd.json"


def test_masks_keep_what_is_equal_equal_and_what_differs_different() -> None:
    one, other = Anonymiser(), Anonymiser()
    assert one.digits("1a2b-3c") == one.digits("1a2b3c")[:4] + "-" + one.digits("1a2b3c")[4:]
    assert one.digits("1A2B").lower() == one.digits("1a2b")
    assert len({one.digits(f"1a2b{n:x}") for n in range(16)}) == 16
    assert one.digits("0" * 32) != other.digits("0" * 32)
    assert one.number(0) == 0


class Asked(Mapping[str, str]):
    """An environment that notes which variables are asked for, and has none."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.names.add(name)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def test_every_variable_that_hides_devices_is_kept() -> None:
    vendors = ("nvidia", "amd", "intel")
    devices = [
        {"id": f"pci:0000:0{n}:00.0", "ids": [f"pci:0000:0{n}:00.0"], "kind": "gpu", "vendor": v}
        | {
            "name": v,
            "memory": {"kind": None, "total": 1 << 34},
            "parent": None,
            "driver": {},
            "pci": {},
        }
        | {"unknown": {}, "backends": []}
        for n, v in enumerate(vendors)
    ]
    asked = Asked()
    for release in ("0.8", "0.9", "0.12", "0.13"):
        for system in ("linux", "windows"):
            see(devices, asked, os=system, versions={"tinygrad": release})
    assert {"CUDA_VISIBLE_DEVICES", "ZE_AFFINITY_MASK", "VK_DRIVER_FILES"} <= asked.names
    assert asked.names - {""} <= set(VARIABLES)


def test_more_than_a_recording_holds_is_left_out(tree: Tree, monkeypatch: Any) -> None:
    machine = card(tree, "active")
    whole = gather(machine, "recorded").recording
    monkeypatch.setattr("probe_core.recording.gather.MAX_ENTRIES", 1024 + 5)
    found = gather(machine, "recorded")
    assert len(found.recording.files) + len(found.recording.links) == 5
    assert found.over == len(whole.files) + len(whole.links) - 5


def test_what_no_document_can_hold_is_left_out(tree: Tree) -> None:
    tree.file("/sys/class/devfreq/\udcff/max_freq", "1")
    machine = Machine(str(tree.root), {"CUDA_VISIBLE_DEVICES": "\udcff"})
    found = gather(machine, "recorded")
    assert found.unreadable == ["/sys/class/devfreq/\udcff/max_freq"]
    assert found.recording.environ == {"CUDA_VISIBLE_DEVICES": "?"}
