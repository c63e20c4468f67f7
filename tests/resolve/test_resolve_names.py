"""Chips by name: of ids that several products share, and of names as a driver prints them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reports import report_of

from probe_core.pipeline.merge import Observation, merge
from probe_core.resolve import open_chipdb, resolve
from probe_core.resolve.accelerators import load_chips, look_up
from probe_core.testing import Tree


@pytest.mark.parametrize(
    ("ids", "name"),
    [
        ("1e52:401e", "Tenstorrent Wormhole, n150 or n300"),
        ("1e60:2864", "Hailo-8, Hailo-8L or Hailo-8R"),
        ("17cb:a100", "Qualcomm Cloud AI 100, Pro, Standard or Ultra"),
        ("19e5:d802", "Ascend 910B, one of 6"),
        ("1ac1:089a", "Coral Edge TPU"),
        ("1022:17f0", None),  # eight NPUs whose names share a word that says nothing
    ],
)
def test_products_that_share_an_id_are_named(ids: str, name: str | None, tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.pci("0000:01:00.0", ids, pci_class="120000", driver="acme")
    device = report_of(tree.machine())["devices"][0]
    assert device["name"] == name
    if device["chip"]["id"] is None and name is not None:
        assert device["sources"]["name"] == "chipdb"
        assert len(device["chip"]["candidates"]) > 1


def test_a_board_that_tells_its_product_has_that_name(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.pci("0000:01:00.0", "1e52:401e", pci_class="120000", subsystem="1e52:0014")
    assert report_of(tree.machine())["devices"][0]["name"] == "Tenstorrent Wormhole n300"


def test_what_was_looked_up_on_arrival_is_not_looked_up_again() -> None:
    """Of a name that no chip has in that form, which takes as long as all else of a device."""
    database, _ = open_chipdb(())
    assert database is not None
    sighting: Any = {
        "ids": ["pci:0000:01:00.0"],
        "kind": "gpu",
        "vendor": "amd",
        "name": "AMD Instinct MI300X OAM",
        "pci": {"id": "1002:74a1", "subsystem": "1002:74a1", "revision": "00"},
        "memory": {"kind": "dedicated", "total": 206141652992},
        "units": 304,
    }
    look_up(sighting, "amd", database)
    devices, _ = merge([Observation("amd", 400, sighting)])
    answers = dict(database._memo)
    assert resolve(devices, database) == []
    assert devices[0]["chip"]["id"] == "amd/instinct-mi300x"
    assert database._memo == answers


@pytest.mark.parametrize(("units", "computed"), [(304, 1), (None, 1), (152, 2)])
def test_peaks_of_a_chip_as_it_is_sold_are_computed_while_children_start(
    units: int | None, computed: int
) -> None:
    """Of a driver that counts other units they are computed anew: a part has a part of them."""
    database, _ = open_chipdb(())
    on_bus: Any = {
        "ids": ["pci:0000:01:00.0"],
        "kind": "gpu",
        "vendor": "amd",
        "pci": {"id": "1002:74a1", "subsystem": "1002:74a1"},
    }
    figures = load_chips([on_bus], database, bool)
    assert list(figures.chips) == [("amd/instinct-mi300x", "(None, {})")]
    devices, _ = merge([Observation("amd", 400, on_bus | {"units": units})])
    resolve(devices, database, figures=figures)
    assert len(figures.chips) == computed
    alone, _ = merge([Observation("amd", 400, on_bus | {"units": units})])
    resolve(alone, database)
    assert devices == alone
    assert devices[0]["fp16"] == (653.7216 if units == 152 else 1307.4432)


def test_processors_are_looked_up_while_children_start() -> None:
    database, _ = open_chipdb(())
    assert database is not None
    cpu = {"vendor_id": "AuthenticAMD", "family": 25, "model": 0x11, "flags": ["avx2", "fma"]}
    sighting: Any = {"ids": ["cpu:0"], "kind": "cpu", "name": "AMD EPYC 9654", "cpu": cpu}
    sighting |= {"units": 96, "clocks": {"max_mhz": 3700}}
    figures = load_chips([sighting], database, bool)
    devices, _ = merge([Observation("cpu", 100, sighting)])
    answers, (computed,) = dict(database._cores), figures.cores.values()
    assert len(answers) == 1
    assert resolve(devices, database, figures=figures) == []
    assert devices[0]["arch"] == "zen4"
    assert database._cores == answers
    assert len(figures.cores) == 1
    assert devices[0]["peaks"] == computed
    assert devices[0]["peaks"][0] is not computed[0]  # a hybrid's are changed to a range, in place
