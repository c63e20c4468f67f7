"""What is an accelerator, a display or neither, from the kernel's files alone."""

from __future__ import annotations

from typing import Any

import pytest
from reports import report_of
from trees import Tree

from probe_core.api import NotApplicable, Request, Unavailable
from probe_core.machine import Machine
from probe_core.model.verdict import NodeVerdict
from probe_core.probers import bus
from probe_core.probers.bus import DISPLAY_ONLY
from probe_core.probers.functions import VENDORS


def pci(tree: Tree, address: str, ids: str, pci_class: str, **files: str) -> str:
    return tree.pci(address, ids, pci_class=pci_class, power=None, **files)


def seen(tree: Tree) -> Any:
    return bus.probe_devices(Request(tree.machine()))


@pytest.mark.parametrize(
    ("ident", "pci_class", "kind"),
    [
        ("10de:2684", "030000", "gpu"),
        ("10de:2330", "030200", "gpu"),
        ("1414:008e", "030200", None),  # of WSL: the GPU of Windows, or its software renderer
        ("1002:74a1", "120000", "gpu"),
        ("1002:7408", "038000", "gpu"),
        ("8086:56a0", "030000", "gpu"),
        ("8086:7d1d", "120000", "npu"),
        ("1022:1502", "118000", "npu"),
        ("1022:17f0", "118000", "npu"),
        ("1da3:1020", "120000", "accelerator"),
        ("1ae0:0063", "ff0000", "accelerator"),
        ("1d0f:7264", "088000", "accelerator"),
        ("1e60:2864", "120000", "npu"),
        ("1e52:401e", "120000", "accelerator"),
        ("1ac1:089a", "0880ff", "npu"),
        ("ffff:0001", "120000", "coprocessor"),
        ("ffff:0001", "0b4000", "coprocessor"),
        ("8086:37c8", "0b4000", "coprocessor"),
        ("ffff:0001", "030000", "gpu"),
        ("1a03:2000", "030000", "display"),
        ("102b:0536", "030000", "display"),
        ("1b36:0100", "030000", "display"),
        ("1af4:1050", "038000", "display"),
        ("15ad:0405", "030000", "display"),
        ("1414:5353", "030000", "display"),
        ("1234:1111", "030000", "display"),
        ("1013:00b8", "030000", "display"),
        ("19e5:1711", "030000", "display"),
        ("1002:515e", "030000", "display"),
        # neither: sound, bridges, network and storage, also of makers of accelerators
        ("10de:22ba", "040300", None),
        ("10de:1af1", "068000", None),
        ("1022:1480", "060000", None),
        ("1022:148a", "130000", None),
        ("1d0f:ec20", "020000", None),
        ("1d0f:8061", "010802", None),
        ("1d0f:1111", "030000", None),
        ("1ae0:0042", "020000", None),
        ("1da3:1000", "020000", None),
        ("8086:1234", "020000", None),
    ],
)
def test_kind_of_a_pci_device(ident: str, pci_class: str, kind: str | None, tree: Tree) -> None:
    pci(tree, "0000:01:00.0", ident, pci_class)
    found = seen(tree)
    assert ([one["kind"] for one in found] if kind else found.reason) == (
        [kind] if kind else "no display, GPU or accelerator is on any bus"
    )


def test_all_fields_of_a_card(tree: Tree) -> None:
    folder = pci(
        tree,
        "0000:01:00.0",
        "10de:2684",
        "030000",
        subsystem_vendor="0x1043",
        subsystem_device="0x889a",
        revision="0xa1",
        numa_node="1",
        current_link_speed="2.5 GT/s PCIe",
        current_link_width="16",
        max_link_speed="16.0 GT/s PCIe",
        max_link_width="16",
    )
    tree.file(f"{folder}/power/runtime_status", "active\n")
    tree.link(f"{folder}/driver", "/sys/bus/pci/drivers/nvidia")
    tree.link("/sys/class/drm/card1/device", folder)
    tree.link("/sys/class/drm/renderD129/device", folder)
    tree.link("/sys/class/drm/card1-DP-1/device", folder)
    assert seen(tree) == [
        {
            "ids": ["pci:0000:01:00.0"],
            "kind": "gpu",
            "vendor": "nvidia",
            "pci": {
                "id": "10de:2684",
                "subsystem": "1043:889a",
                "revision": "a1",
                "class": "030000",
            },
            "links": [
                {
                    "kind": "pcie",
                    "peer": None,
                    "gts": 2.5,
                    "max_gts": 16.0,
                    "width": 16,
                    "max_width": 16,
                    "generation": 1,
                    "bandwidth": 4_000_000_000,
                    "local_gts": 2.5,
                    "local_max_gts": 16.0,
                    "local_width": 16,
                    "local_max_width": 16,
                    "local_generation": 1,
                    "local_bandwidth": 4_000_000_000,
                }
            ],
            "node_index": {"drm_card": 1, "drm_render": 129},
            "driver": {"name": "nvidia"},
            "power_state": "active",
            "numa_node": 1,
        }
    ]


@pytest.mark.parametrize(
    ("files", "absent"),
    [
        ({"numa_node": "-1"}, "numa_node"),
        ({"subsystem_vendor": "0x0000", "subsystem_device": "0x0000"}, "subsystem"),
        ({"revision": "zz"}, "revision"),
        ({"subsystem_vendor": "0x1043"}, "subsystem"),
    ],
)
def test_what_the_firmware_does_not_say_is_left_out(
    files: dict[str, str], absent: str, tree: Tree
) -> None:
    pci(tree, "0000:01:00.0", "10de:2684", "030000", **files)
    (device,) = seen(tree)
    assert absent not in device
    assert absent not in device["pci"]


@pytest.mark.parametrize("width", ["0", "255", "", "wide"])
def test_link_of_an_integrated_device(width: str, tree: Tree) -> None:
    pci(tree, "0000:00:02.0", "8086:a780", "030000", current_link_width=width)
    assert seen(tree)[0]["links"] == []


def test_domains_beyond_the_first(tree: Tree) -> None:
    pci(tree, "000f:01:00.0", "10de:2e12", "030200")
    pci(tree, "10000:19:00.0", "1002:6860", "030000")
    assert [one["ids"] for one in seen(tree)] == [["pci:000f:01:00.0"], ["pci:10000:19:00.0"]]


def test_unknown_power_state_is_left_out(tree: Tree) -> None:
    folder = pci(tree, "0000:01:00.0", "10de:2684", "030000")
    tree.file(f"{folder}/power/runtime_status", "unsupported\n")
    assert "power_state" not in seen(tree)[0]


@pytest.mark.parametrize("state", ["active", "suspended", "suspending", "resuming"])
def test_power_states(state: str, tree: Tree) -> None:
    folder = pci(tree, "0000:01:00.0", "10de:2684", "030000")
    tree.file(f"{folder}/power/runtime_status", state)
    assert seen(tree)[0]["power_state"] == state


def test_only_files_are_read_never_config_space(tree: Tree) -> None:
    """Reading `config` would wake a sleeping device; the prober must not even look."""
    folder = pci(tree, "0000:01:00.0", "10de:2684", "030000")
    import os

    os.mkfifo(tree.root / folder.lstrip("/") / "config")
    assert seen(tree)[0]["kind"] == "gpu"


def test_display_only_vendors_have_names() -> None:
    assert set(VENDORS) >= DISPLAY_ONLY


def test_empty_bus_is_not_applicable(tree: Tree) -> None:
    assert isinstance(seen(tree), NotApplicable)


def test_a_folder_of_the_bus_that_cannot_be_read_is_no_empty_bus(tree: Tree) -> None:
    folder = tree.root / "sys" / "bus" / "pci" / "devices"
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.symlink_to("devices")  # a loop: root, too, is refused
    with pytest.raises(
        Unavailable, match=r"^/sys/bus/pci/devices cannot be read \(Too many"
    ) as told:
        bus.Scan(tree.machine()).answer()
    assert (told.value.code, "let this process read" in str(told.value.fix)) == ("no-sysfs", True)
    assert report_of(tree.machine())["fallback"] == "degraded"


def test_without_sysfs_it_is_not_known_what_is_on_a_bus(tree: Tree) -> None:
    (tree.root / "sys" / "devices").rmdir()
    with pytest.raises(Unavailable, match=r"^/sys is not mounted or cannot be read") as raised:
        bus.Scan(tree.machine()).answer()
    assert isinstance(seen(tree), NotApplicable)
    assert (raised.value.code, "mount /sys" in str(raised.value.fix)) == ("no-sysfs", True)
    assert isinstance(
        bus.probe_devices(Request(Machine(str(tree.root), os="darwin"))), NotApplicable
    )
    report = report_of(tree.machine())
    assert (report["outcomes"][0]["status"], report["fallback"]) == ("unavailable", "degraded")
    (told,) = (entry for entry in report["findings"] if entry["code"] == "prober-unavailable")
    assert (told["prober"], told["why"], told["fix"]) == (
        "bus",
        raised.value.reason,
        raised.value.fix,
    )
    assert NodeVerdict(report).state == "unknown"


def test_a_display_is_no_accelerator(tree: Tree) -> None:
    pci(tree, "0000:02:00.0", "1a03:2000", "030000")
    scan = bus.Scan(tree.machine())
    assert (scan.shows_any, scan.shows_accelerator) == (True, False)


def test_vendors_are_known_before_a_device_is_described(tree: Tree) -> None:
    pci(tree, "0000:01:00.0", "10de:2684", "030000")
    pci(tree, "0000:02:00.0", "1a03:2000", "030000")
    pci(tree, "0000:03:00.0", "8086:10fb", "020000")
    scan = bus.Scan(tree.machine())
    assert (scan.vendors, scan.shows_any, scan.shows_accelerator) == ({"10de", "1a03"}, True, True)
    sightings = scan.answer()
    assert not isinstance(sightings, NotApplicable)
    assert {sighting["pci"]["id"][:4] for sighting in sightings} == scan.vendors
    assert bus.probe_devices(Request(tree.machine())) == sightings
