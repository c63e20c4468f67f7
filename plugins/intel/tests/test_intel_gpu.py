"""Cards and integrated GPUs under xe and i915: memory, clocks, links; awake and asleep."""

from __future__ import annotations

from io import FileIO
from pathlib import Path
from typing import Any

import pytest

from probe_core.api import Machine, NotApplicable, Request

GIB = 1 << 30
CARD = "pci:0000:03:00.0"
BAR_16G = "0x0000004000000000 0x00000043ffffffff 0x000000000014220c"


def resource(bar2: str) -> str:
    mmio = "0x0000000080000000 0x0000000080ffffff 0x0000000000140204"
    none = " ".join(["0x0000000000000000"] * 3)
    return "\n".join([mmio, none, bar2, none, none, none, none])


def battlemage(tree: Any, status: str = "active") -> str:
    """A B580 under xe of Linux 6.14."""
    under = tree.behind_switch()
    folder: str = tree.function(
        "0000:03:00.0", "0xe20b", "xe", under=under, status=status, subsystem_vendor="0x8086",
        subsystem_device="0x1100", resource=resource(BAR_16G),
    )  # fmt: skip
    for gt, rp0 in ((0, 2850), (1, 1500)):
        tree.file(f"{folder}/tile0/gt{gt}/freq0/rp0_freq", rp0)
        tree.file(f"{folder}/tile0/gt{gt}/freq0/max_freq", 2400)
    tree.file(f"{folder}/drm/card1/dev", "226:1")
    tree.file(f"{folder}/drm/renderD128/dev", "226:128")
    tree.file("/sys/fs/cgroup/dmem.capacity", "drm/0000:03:00.0/vram0 12674138112\n"
              "drm/0000:03:00.0/stolen 67108864\ndrm/0000:0a:00.0/vram0 1")  # fmt: skip
    return folder


def test_battlemage_is_told_in_full(tree: Any) -> None:
    battlemage(tree)
    card = tree.single()
    assert card["pci"] == {
        "id": "8086:e20b", "revision": "08", "subsystem": "8086:1100", "class": "030000",
    }  # fmt: skip
    assert card["memory"] == {
        "kind": "dedicated", "total": 12674138112, "usable": 12674138112,
        "parts": {"vram": 12674138112},
    }  # fmt: skip
    assert card["extra"] == {
        "memory_source": "dmem.capacity, without firmware's part", "vram_bar_bytes": 16 * GIB,
    }  # fmt: skip
    assert card["driver"] == {"name": "xe", "version": "6.14.2", "version_of": "kernel"}
    assert card["backends"] == ["level-zero"]
    assert card["node_index"] == {"drm_card": 1, "drm_render": 128}
    assert set(card["unknown"]) == {"name", "units", "memory.free"}


def test_media_engine_does_not_set_the_clock_and_a_limit_is_told(tree: Any) -> None:
    battlemage(tree)
    assert tree.single()["clocks"] == {"max_mhz": 2850, "limit_mhz": 2400}


@pytest.mark.parametrize(
    ("rp0", "limit", "clocks"),
    [(0, 2400, None), (-1, 0, None), (2400, 2400, 2400), (2400, 2401, 2400), (2400, 0, 2400),
     (1, -1, 1)],
)  # fmt: skip
def test_a_clock_of_zero_is_none_and_a_limit_is_below_the_maximum(
    tree: Any, rp0: int, limit: int, clocks: int | None
) -> None:
    folder = battlemage(tree)
    tree.file(f"{folder}/tile0/gt0/freq0/rp0_freq", rp0)
    tree.file(f"{folder}/tile0/gt0/freq0/max_freq", limit)
    card = tree.single()
    assert card.get("clocks") == (clocks and {"max_mhz": clocks})
    reason = None if clocks else "xe shows no RP0 frequency"
    assert card["unknown"].get("clocks.max_mhz") == reason


@pytest.mark.parametrize(
    ("tile", "card", "total"),
    [(0, 0, None), (0, GIB, GIB), (2 * GIB, GIB, 2 * GIB), (-1, GIB, GIB)],
)
def test_a_size_of_zero_is_none(tree: Any, tile: int, card: int, total: int | None) -> None:
    folder = battlemage(tree)
    tree.file("/sys/fs/cgroup/dmem.capacity", "")
    tree.file(f"{folder}/tile0/physical_vram_size_bytes", tile)
    tree.file(f"{folder}/drm/card1/lmem_total_bytes", card)
    assert tree.single()["memory"].get("total") == total


def test_link_is_the_slots_not_the_one_inside_the_card(tree: Any) -> None:
    battlemage(tree)
    assert tree.single()["links"] == [{
        "kind": "pcie", "peer": None, "width": 8, "gts": 16.0, "generation": 4,
        "bandwidth": 15_753_846_153, "max_width": 16, "max_gts": 16.0,
        "local_width": 8, "local_gts": 16.0, "local_generation": 4,
        "local_bandwidth": 15_753_846_153, "local_max_width": 16, "local_max_gts": 16.0,
    }]  # fmt: skip


def test_a_switch_with_a_narrow_uplink_limits_the_card_behind_it(tree: Any) -> None:
    """Two switches: the server's, with four lanes to the host, and the card's own."""
    under = tree.switch(uplink=(4, 8.0))
    up = tree.bridge("0000:03:00.0", "8086:e2ff", under=under, link=(8, 16.0), max_link=(16, 16.0))
    down = tree.bridge("0000:04:01.0", "8086:e2f0", under=up, link=(1, 2.5), max_link=(1, 2.5))
    tree.function("0000:05:00.0", "0xe20b", "xe", under=down, link=(1, 2.5), max_link=(1, 2.5))
    assert tree.single()["links"] == [{
        "kind": "pcie", "peer": None, "width": 4, "gts": 8.0, "generation": 3,
        "bandwidth": 3_938_461_538, "local_width": 8, "local_gts": 16.0, "local_generation": 4,
        "local_bandwidth": 15_753_846_153, "local_max_width": 16, "local_max_gts": 16.0,
        "limited_by": "0000:01:00.0",
    }]  # fmt: skip


def test_in_a_guest_the_inner_link_is_not_believed(tree: Any) -> None:
    tree.function("0000:00:05.0", "0x56a0", "i915", link=(1, 2.5))  # fmt: skip
    card = tree.single()
    assert card["links"] == [{"kind": "pcie", "peer": None}]
    assert "switch on the card" in card["unknown"]["links.bandwidth"]
    assert card["memory"] == {"kind": "dedicated"}


def test_card_without_a_switch_has_its_own_link(tree: Any) -> None:
    """DG1 has none; its root port is Intel's too."""
    port = tree.function("0000:00:01.0", "0xa70d", "pcieport", pci_class="0x060400",
                         current_link_speed="16.0 GT/s PCIe", current_link_width=16)  # fmt: skip
    tree.function("0000:01:00.0", "0x4905", "i915", under=port, current_link_speed="8.0 GT/s PCIe",
                  current_link_width=4)  # fmt: skip
    (link,) = tree.single()["links"]
    assert (link["gts"], link["width"], link["bandwidth"]) == (8.0, 4, 3_938_461_538)


def test_mainline_i915_does_not_tell_vram(tree: Any) -> None:
    under = tree.behind_switch()
    folder = tree.function("0000:03:00.0", "0x56a0", "i915", under=under,
                           resource=resource(BAR_16G))  # fmt: skip
    tree.file(f"{folder}/drm/card0/gt/gt0/rps_RP0_freq_mhz", 2400)
    tree.file(f"{folder}/drm/card0/gt/gt0/rps_max_freq_mhz", 2400)
    card = tree.single()
    assert card["memory"] == {"kind": "dedicated"}
    assert card["extra"] == {"vram_bar_bytes": 16 * GIB}
    why = "i915 gives it only to programs that open the device"
    assert card["unknown"]["memory.total"] == why
    assert card["clocks"] == {"max_mhz": 2400}
    assert card["backends"] == ["level-zero"]


def test_intels_own_build_of_i915_tells_vram_and_its_version(tree: Any) -> None:
    under = tree.behind_switch()
    folder = tree.function("0000:03:00.0", "0x56c0", "i915", under=under)
    tree.file(f"{folder}/drm/card0/lmem_total_bytes", 16 * GIB)
    tree.file("/sys/module/i915/version", "1.24.5.19")
    card = tree.single()
    assert card["memory"] == {
        "kind": "dedicated", "total": 16 * GIB, "parts": {"vram": 16 * GIB},
    }  # fmt: skip
    assert card["driver"] == {"name": "i915", "version": "1.24.5.19", "version_of": "module"}
    assert "firmware" in card["unknown"]["memory.usable"]
    assert card["extra"] == {"memory_source": "lmem_total_bytes"}


def test_ponte_vecchio_sums_its_tiles(tree: Any) -> None:
    folder = tree.function("0000:9a:00.0", "0x0bd5", "xe", pci_class="0x038000")
    for tile in (0, 1):
        tree.file(f"{folder}/tile{tile}/physical_vram_size_bytes", 64 * GIB)
        tree.file(f"{folder}/tile{tile}/gt{tile}/freq0/rp0_freq", 1600)
        tree.file(f"{folder}/tile{tile}/memory/freq0/max_freq", 3200)
    tree.file("/sys/fs/cgroup/dmem.capacity",
              f"drm/0000:9a:00.0/vram0 {63 * GIB}\ndrm/0000:9a:00.0/vram1 {62 * GIB}")  # fmt: skip
    card = tree.single()
    assert card["memory"] == {
        "kind": "dedicated", "total": 128 * GIB, "usable": 125 * GIB,
        "parts": {"vram": 128 * GIB},
    }  # fmt: skip
    assert card["clocks"] == {"max_mhz": 1600, "memory_max_mhz": 3200}


@pytest.mark.parametrize(("mhz", "shown"), [(1, 1), (0, None), (-1, None)])
def test_a_memory_clock_is_positive(tree: Any, mhz: int, shown: int | None) -> None:
    folder = tree.function("0000:9a:00.0", "0x0bd5", "xe", pci_class="0x038000")
    tree.file(f"{folder}/tile0/memory/freq0/max_freq", mhz)
    assert tree.single().get("clocks", {}).get("memory_max_mhz") == shown


def test_a_tile_of_unknown_size_makes_the_sum_unknown(tree: Any) -> None:
    folder = tree.function("0000:9a:00.0", "0x0bd5", "xe", pci_class="0x038000")
    tree.file(f"{folder}/tile0/physical_vram_size_bytes", 64 * GIB)
    tree.file(f"{folder}/tile1/physical_vram_size_bytes", "")
    assert tree.single()["memory"] == {"kind": "dedicated"}


def integrated(tree: Any, status: str = "active") -> str:
    """Meteor Lake under i915: GT 1 is media, and the card's file gives the maximum over both."""
    folder: str = tree.function("0000:00:02.0", "0x7d55", "i915", status=status)
    tree.file(f"{folder}/drm/card0/gt_RP0_freq_mhz", 2350)
    tree.file(f"{folder}/drm/card0/gt/gt0/rps_RP0_freq_mhz", 2250)
    tree.file(f"{folder}/drm/card0/gt/gt0/rps_max_freq_mhz", 1900)
    tree.file(f"{folder}/drm/card0/gt/gt1/rps_RP0_freq_mhz", 2350)
    return folder


def test_integrated_gpu_has_the_systems_memory(tree: Any) -> None:
    integrated(tree)
    gpu = tree.single()
    assert gpu["memory"] == {
        "kind": "unified", "total": 32_768_000_000, "usable": 32_768_000_000,
        "free": 20_480_000_000, "parts": {"system": 32_768_000_000},
    }  # fmt: skip
    assert gpu["clocks"] == {"max_mhz": 2250, "limit_mhz": 1900}
    assert "links" not in gpu
    assert "backends" not in gpu


def test_older_kernels_have_the_cards_files_alone(tree: Any) -> None:
    folder = tree.function("0000:00:02.0", "0x3e92", "i915")
    tree.file(f"{folder}/drm/card0/gt_RP0_freq_mhz", 1150)
    tree.file(f"{folder}/drm/card0/gt_max_freq_mhz", 1150)
    assert tree.single()["clocks"] == {"max_mhz": 1150}


def test_an_unknown_gpu_elsewhere_is_neither_card_nor_integrated(tree: Any) -> None:
    """A virtual function of an integrated GPU in a guest: any slot, with the id of the whole."""
    tree.function("0000:06:10.0", "0x4680", "i915")
    gpu = tree.single()
    assert "memory" not in gpu
    assert "neither its id nor its address" in gpu["unknown"]["memory.kind"]


def test_virtual_function_is_a_part_of_its_gpu(tree: Any) -> None:
    integrated(tree)
    folder = tree.function("0000:00:02.1", "0x7d55", "vfio-pci")
    tree.link(f"{folder}/physfn", "/sys/devices/pci0000:00/0000:00:02.0")
    part = tree.devices()["pci:0000:00:02.1"]
    assert part["parent"] == "pci:0000:00:02.0"
    assert part["extra"] == {"sriov": "virtual function"}
    assert part["unknown"]["memory.total"] == "bound to vfio-pci, not to i915 or xe"
    assert tree.steps() == []


class Opened:
    """Which files were opened, below the machine's own code."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.paths: list[str] = []

        def spy(path: str) -> FileIO:
            self.paths.append(path)
            return FileIO(path)

        monkeypatch.setattr("probe_core.machine.FileIO", spy)

    def names(self, address: str) -> set[str]:
        return {Path(path).name for path in self.paths if f"/{address}/" in path}


def test_of_a_sleeping_xe_card_no_file_that_wakes_it_is_opened(
    tree: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    battlemage(tree, "suspended")
    opened = Opened(monkeypatch)
    card = tree.single()
    cached = {"vendor", "device", "class", "revision", "subsystem_vendor", "subsystem_device"}
    kept = {"runtime_status", "resource"}
    assert opened.names("0000:03:00.0") == cached | kept
    assert opened.names("0000:01:00.0") == {"vendor", "class"}
    assert card["power_state"] == "suspended"
    assert card["memory"]["total"] == 12674138112
    assert card["links"] == [{"kind": "pcie", "peer": None}]
    for field in ("clocks.max_mhz", "links.bandwidth"):
        assert "not woken" in card["unknown"][field]


def test_a_sleeping_i915_gpu_still_tells_its_clock(
    tree: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    integrated(tree, "suspended")
    opened = Opened(monkeypatch)
    assert tree.single()["clocks"] == {"max_mhz": 2250, "limit_mhz": 1900}
    drivers = {name for name in opened.names("0000:00:02.0") if "freq" in name}
    assert drivers == {"rps_RP0_freq_mhz", "rps_max_freq_mhz"}


def test_gpu_that_a_loaded_module_leaves_alone_needs_a_newer_kernel(tree: Any) -> None:
    tree.function("0000:03:00.0", "0xe20b", None)
    assert tree.steps() == []  # no module is loaded: the core tells why
    tree.file("/sys/module/xe/parameters/force_probe", "\n")
    (fact,) = tree.single()["step_facts"]
    assert (fact["step"], fact["status"], fact["code"]) == ("driver", "broken", "kernel-too-old")
    assert fact["evidence"].endswith("driver is absent; loaded: xe (force_probe is empty)")
    assert tree.single()["unknown"]["memory.total"] == "no driver is bound"
    assert "nodes" not in tree.single()


def test_gpu_lent_to_a_guest_is_left_to_the_core(tree: Any) -> None:
    tree.file("/sys/module/xe/refcnt", 0)
    tree.function("0000:03:00.0", "0xe20b", "vfio-pci")
    assert tree.steps() == []
    assert tree.single()["driver"]["name"] == "vfio-pci"
    assert "nodes" not in tree.single()


def test_virtual_function_without_driver_waits_for_a_guest(tree: Any) -> None:
    tree.file("/sys/module/xe/refcnt", 0)
    folder = tree.function("0000:03:00.1", "0xe20b", None)
    tree.link(f"{folder}/physfn", tree.function("0000:03:00.0", "0xe20b", "xe"))
    assert tree.steps() == []


def test_programs_open_the_render_node(tree: Any) -> None:
    tree.function("0000:03:00.0", "0xe20b", "xe", drm=(1, 129))
    assert tree.single()["nodes"] == ["/dev/dri/renderD129"]


def test_gpu_to_avoid_is_not_asked(tree: Any) -> None:
    for bus in (3, 4):
        folder = tree.function(f"0000:0{bus}:00.0", "0xe20b", "xe")
        tree.file(f"{folder}/tile0/physical_vram_size_bytes", 12 << 30)
    avoided, asked = tree.items(avoid=(CARD,))
    assert (avoided["ids"], avoided["kind"]) == ([CARD], "gpu")
    assert "memory" not in avoided
    assert [(f["step"], f["code"]) for f in avoided["step_facts"]] == [
        ("responding", "driver-hangs"),
    ]
    assert asked["memory"]["total"] == 12 << 30


def test_bus_sightings_are_taken_as_they_are(tree: Any) -> None:
    battlemage(tree)
    tree.function("0000:00:02.0", "0x7d55", "i915")
    seen = {"ids": [CARD], "kind": "gpu", "pci": {"id": "8086:e20b", "class": "030000"}}
    other = {"ids": ["pci:0000:0a:00.0"], "pci": {"id": "10de:2684", "class": "030000"}}
    (card,) = [one for one in tree.items((seen, other)) if "ids" in one]
    assert (card["ids"], card["pci"]) == ([CARD], seen["pci"])


def test_machine_without_intel_is_not_applicable(tree: Any) -> None:
    from probe_intel.prober import probe_devices

    tree.function("0000:01:00.0", "0x2684", "nvidia", vendor="0x10de")
    tree.function("0000:00:1f.3", "0x7a50", "snd_hda_intel", pci_class="0x040300")
    answer = probe_devices(Request(Machine(str(tree.root))))
    assert isinstance(answer, NotApplicable)
    assert answer.reason == "no Intel GPU, NPU or Gaudi on the PCI bus"


@pytest.mark.parametrize("text", ["", "x", "-1", "0x", "nan", "0"])
def test_nonsense_in_files_is_unknown_never_zero(tree: Any, text: str) -> None:
    folder = tree.function("0000:03:00.0", "0xe20b", "xe", resource=text)
    tree.file(f"{folder}/tile0/physical_vram_size_bytes", text)
    tree.file(f"{folder}/tile0/gt0/freq0/rp0_freq", text)
    tree.file(f"{folder}/drm/card0/lmem_total_bytes", text)
    tree.file("/sys/fs/cgroup/dmem.capacity", f"drm/0000:03:00.0/vram0 {text}")
    card = tree.single()
    assert card["memory"] == {"kind": "dedicated"}
    assert "clocks" not in card
    assert card["unknown"]["clocks.max_mhz"] == "xe shows no RP0 frequency"
