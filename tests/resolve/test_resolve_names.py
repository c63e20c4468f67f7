"""The name of an accelerator whose ids stand for several products."""

from __future__ import annotations

from pathlib import Path

import pytest
from reports import report_of

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
