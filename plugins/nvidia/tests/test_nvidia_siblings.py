"""What NVML reports of several GPUs, compared as siblings: the faked machines are healthy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from probe_core.readiness.siblings import differences, lone_links

Ask = Callable[..., dict[str, Any]]
PROFILES = Path(__file__).resolve().parents[3] / "tests" / "fakes" / "nvml" / "profiles"


def devices_of(said: dict[str, Any]) -> list[Any]:
    """Return sightings as the devices of a report, as far as siblings are compared by them."""
    empty = {"links": [], "memory": {"total": None}, "pci": None, "parent": None}
    steps: dict[str, Any] = {"chip": {"id": None}, "readiness": {"steps": []}}
    return [
        {"id": sighting["ids"][0], **empty, **steps, **sighting} for sighting in said["devices"]
    ]


@pytest.mark.parametrize("profile", ["h100x8", "3090-pair", "4090-3090"])
def test_the_faked_machines_have_equal_siblings(profile: str, ask: Ask) -> None:
    devices = devices_of(ask(profile))
    assert len(devices) > 1
    assert [found.sentence for found in differences(devices)] == []
    assert list(lone_links(devices)) == []


def test_one_of_eight_has_fewer_links_lanes_and_watts(ask: Ask) -> None:
    head, *gpus = (PROFILES / "h100x8.profile").read_text().split("\ngpu\n")
    gpus[3] = (
        gpus[3]
        .replace("nvlink 14-17 up", "nvlink 14-17 down")
        .replace("pcie 5 16 5 16", "pcie 5 8 5 16")
        .replace("ecc 1 1", "ecc 0 0")
    )
    devices = devices_of(ask("\ngpu\n".join([head, *gpus])))
    found = list(differences(devices))
    assert {difference.device["id"] for difference in found} == {devices[3]["id"]}
    assert [difference.sentence for difference in found] == [
        "NVLinks active 14, its 7 siblings 18",
        "PCIe ×8, its 7 siblings ×16",
        "ECC off, its 7 siblings on",
    ]
