"""DRM and accel nodes, sensors, and what is numbered."""

from __future__ import annotations

import pytest
from trees import Tree

from probe_core.sysfs import accel, drm, hwmon, nodes, numbered
from probe_core.sysfs.sighting import Draft


def test_minors_of_a_device_and_of_all(tree: Tree) -> None:
    gpu = tree.pci("0000:01:00.0", "8086:56a0", drm=(1, 129))
    npu = tree.pci("0000:00:0b.0", "8086:7d1d", pci_class="120000", accel=0)
    tree.link("/sys/class/drm/card1-DP-1/device", gpu)
    machine = tree.machine()
    assert drm.minors(machine, gpu) == {"drm_card": 1, "drm_render": 129}
    assert drm.by_device(machine) == {gpu: {"drm_card": 1, "drm_render": 129}}
    assert accel.minors(machine, npu) == {"accel": 0}
    assert accel.by_device(machine) == {npu: {"accel": 0}}
    assert drm.minors(machine, npu) == accel.minors(machine, gpu) == {}


def test_numbered_entries_are_in_the_order_of_their_numbers(tree: Tree) -> None:
    for name in ("tile10", "tile2", "tile", "tilex", "tile-1", "tile" + "9" * 30):
        tree.file(f"/sys/x/{name}/y", "")
    assert numbered.entries(tree.machine(), "/sys/x", "tile") == [
        (2, "/sys/x/tile2"),
        (10, "/sys/x/tile10"),
    ]
    assert numbered.lowest(tree.machine(), "/sys/x", {"a": "tile", "b": "card"}) == {"a": 2}


@pytest.mark.heavy
def test_a_folder_without_end_is_bounded(tree: Tree) -> None:
    for number in range(numbered.MAX_ENTRIES + 10):
        (tree.root / f"sys/x/t{number}").mkdir(parents=True)
    assert len(numbered.entries(tree.machine(), "/sys/x", "t")) == numbered.MAX_ENTRIES


def sensors(tree: Tree, **files: object) -> list[tuple[object, ...]]:
    folder = tree.pci("0000:01:00.0", "1002:744c", power=str(files.pop("power", "active")))
    for name, content in {"name": "amdgpu\n", **files}.items():
        tree.file(f"{folder}/hwmon/hwmon7/{name}", content)
    found = hwmon.sensors(tree.machine(), folder)
    return [(one.kind, one.number, one.item, one.label, one.value, one.unit) for one in found]


def test_sensors_in_units_for_people(tree: Tree) -> None:
    found = sensors(
        tree, temp1_input=45000, temp1_label="edge\n", temp1_crit=100000, temp2_input=-5000,
        temp2_label="junction", power1_average=23_000_000, power1_cap=327_000_000,
        power1_label="PPT\n", in0_input=806, fan1_input=0, freq1_input=2_482_000_000,
        energy1_input=1_500_000, curr1_input=12_500, pwm1=120, temp1_alarm=0,
    )  # fmt: skip
    assert found == [
        ("curr", 1, "input", None, 12.5, "A"),
        ("energy", 1, "input", None, 1.5, "J"),
        ("fan", 1, "input", None, 0, "rpm"),
        ("freq", 1, "input", None, 2_482_000_000, "Hz"),
        ("in", 0, "input", None, 0.806, "V"),
        ("power", 1, "average", "PPT", 23.0, "W"),
        ("power", 1, "cap", "PPT", 327.0, "W"),
        ("temp", 1, "crit", "edge", 100.0, "°C"),
        ("temp", 1, "input", "edge", 45.0, "°C"),
        ("temp", 2, "input", "junction", -5.0, "°C"),
    ]


def test_places_of_sensors_by_number_and_by_label(tree: Tree) -> None:
    sensors(tree, temp1_input=1, temp1_label="Edge\n", temp2_label="\n", fan1_input=1, pwm1=9)
    folder = "/sys/devices/pci0000:00/0000:01:00.0"
    hwmon7 = f"{folder}/hwmon/hwmon7"
    assert hwmon.places(tree.machine(), folder) == {
        "temp1": f"{hwmon7}/temp1",
        "temp edge": f"{hwmon7}/temp1",
        "temp2": f"{hwmon7}/temp2",
        "fan1": f"{hwmon7}/fan1",
    }


@pytest.mark.parametrize(
    ("raw", "values"), [((1 << 64) - 1, [(1 << 64) - 1]), (1 << 64, []), (-(1 << 64), [])]
)
def test_what_no_kernel_writes_is_no_reading(raw: int, values: list[int], tree: Tree) -> None:
    assert [found[4] for found in sensors(tree, fan1_input=raw)] == values


def test_sensors_of_a_sleeping_device_are_not_read(tree: Tree) -> None:
    assert sensors(tree, power="suspended", temp1_input=45000) == []


def test_sensors_that_refuse_or_say_nonsense_are_left_out(tree: Tree) -> None:
    folder = tree.pci("0000:01:00.0", "1002:744c")
    for name, text in (("temp1_input", "hot"), ("temp2_input", "9" * 60), ("temp3_input", "1")):
        tree.file(f"{folder}/hwmon/hwmon0/{name}", text)
    (tree.root / f"{folder}/hwmon/hwmon0/power1_input".lstrip("/")).mkdir()
    (one,) = hwmon.sensors(tree.machine(), folder)
    assert (one.chip, one.kind, one.value) == (None, "temp", 0.001)
    assert repr(one) == "Sensor(temp3_input=0.001 °C)"


def test_number_of_sensors_is_bounded(tree: Tree) -> None:
    files: dict[str, object] = {f"temp{number}_input": 1000 for number in range(1000)}
    assert len(sensors(tree, **files)) == hwmon.MAX_SENSORS == 256


def test_nodes_that_compute_opens() -> None:
    index = {"drm_card": 1, "drm_render": 129, "accel": 0, "mali": 0, "kfd": 3}
    assert nodes.paths(index) == ["/dev/dri/renderD129", "/dev/accel/accel0", "/dev/mali0"]


def test_a_fact_says_what_was_opened_for_it() -> None:
    draft = Draft()
    draft.fact("responding", "ok", "HSA lists it as agent 1", opened=["/dev/kfd"])
    draft.fact("granted", "ok", "its properties can be read")
    scoped, plain = draft.sighting()["step_facts"]
    assert scoped["opened"] == ["/dev/kfd"]
    assert "opened" not in plain
