"""The contract, with the real library on three render nodes of a fake driver, one suspended."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from probe_core.testing import Case, Machine, ProberContract

GIB = 1 << 30
NAVI = {"device": 0x744C, "revision": 0xC8, "vram": 24 * GIB, "gtt": 32 * GIB,
        "sclk_khz": 2482000, "mclk_khz": 1249000}  # fmt: skip


@pytest.mark.heavy
class TestPyamdgpuinfo(ProberContract):
    name = "pyamdgpuinfo"
    target = "probe_pyamdgpuinfo.prober"
    project = Path(__file__).parents[1]
    may = frozenset({"device"})

    @pytest.fixture(autouse=True)
    def fixtures(self, request: pytest.FixtureRequest) -> None:
        self.fixture = request.getfixturevalue

    def hardware(self, root: Path) -> Case:
        cards = self.fixture("new_cards")(root)
        cards.add(128, "0000:03:00.0", **NAVI)
        cards.add(129, "0000:07:00.0", status="suspended", **NAVI)
        cards.add(130, "0000:16:00.0", device=0x164E, vram=GIB, gtt=GIB)
        return Case(Machine(str(root)), live=True, variables=cards.variables)

    def lacking(self, root: Path) -> Mapping[str, Case]:
        cards = self.fixture("new_cards")(root)
        cards.add(128, "0000:00:02.0", driver="i915")
        case = Case(Machine(str(root)), live=True, variables=cards.variables)
        return {"another driver's node": case}

    def broken(self, root: Path) -> Mapping[str, Case]:
        case = self.hardware(root)
        library = root / "site/pyamdgpuinfo.py"
        library.parent.mkdir()
        library.write_text("raise ImportError('libdrm.so.2: cannot open shared object file')\n")
        case.sys_path.append(str(library.parent))
        return {"a library that cannot be loaded": case}

    def test_all_that_is_there_is_found(self, tmp_path: Path) -> None:
        assert len(self.found(tmp_path)[1].sightings) == 3
