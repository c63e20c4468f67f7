"""Runs the real library on cards that are not there, and on what used to crash it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from probe_core.api import Machine, NotApplicable, Request
from probe_pyamdgpuinfo.prober import probe_devices

REPOSITORY = Path(__file__).parents[3]
GIB = 1 << 30


class TestRealLibrary:
    def test_a_card_has_name_memory_and_clocks(self, cards: Any) -> None:
        cards.add(128, "0000:03:00.0", device=0x744C, revision=0xC8, vram=25753026560,
                  gtt=32 * GIB, vram_used=GIB, gtt_used=4096, sclk_khz=2482000,
                  mclk_khz=1249000)  # fmt: skip
        (card,) = cards.probe()
        assert card == {
            "ids": ["pci:0000:03:00.0"], "kind": "gpu", "vendor": "amd",
            "node_index": {"drm_render": 128}, "name": "AMD Radeon RX 7900 XTX",
            "memory": {"parts": {"vram": 25753026560, "gtt": 32 * GIB}},
            "clocks": {"max_mhz": 2482, "memory_max_mhz": 1249},
            "extra": {"vram_used": GIB, "gtt_used": 4096},
            "unknown": {
                "memory.total": "the library does not tell a card from an APU: see the parts",
            },
        }  # fmt: skip

    def test_each_of_several_cards_has_its_own_numbers(self, cards: Any) -> None:
        for place in range(4):
            cards.add(128 + place, f"0000:{place + 3:02x}:00.0", vram=(place + 1) * GIB, gtt=GIB)
        sightings = cards.probe()
        assert [sighting["memory"]["parts"]["vram"] for sighting in sightings] == [
            GIB, 2 * GIB, 3 * GIB, 4 * GIB,
        ]  # fmt: skip

    def test_a_card_without_a_name_or_clocks_says_so(self, cards: Any) -> None:
        cards.add(128, "0000:03:00.0", device=0x9999, vram=GIB, gtt=GIB, sclk_khz=0, mclk_khz=0)
        (card,) = cards.probe()
        assert "name" not in card
        assert "clocks" not in card
        assert card["unknown"]["name"] == "the library's amdgpu.ids has no name for the card"
        assert card["unknown"]["clocks.max_mhz"] == "the driver gives no maximum"

    @pytest.mark.heavy
    @pytest.mark.parametrize(
        ("odd", "reason"),
        [
            ({"content": "not a device"}, "/dev/dri/renderD128 is not a DRM device"),
            ({"accel": 0}, "/dev/dri/renderD128: the driver reports that it cannot compute"),
            ({"fail_query": 0}, "/dev/dri/renderD128: Input/output error"),
            ({"fail_query": 0, "errno": 19}, "/dev/dri/renderD128: No such device"),
            ({"major": 2}, "/dev/dri/renderD128 speaks interface 2, libdrm_amdgpu wants 3"),
            ({"status": "suspended"},
             "suspended (power/runtime_status): opening its node would wake it"),
        ],
    )  # fmt: skip
    def test_a_bad_card_has_a_reason_and_hides_no_other(
        self, cards: Any, odd: dict[str, Any], reason: str
    ) -> None:
        cards.add(128, "0000:03:00.0", **odd)
        cards.add(129, "0000:04:00.0", vram=GIB, gtt=GIB)
        bad, good = cards.probe()
        assert bad["unknown"] == dict.fromkeys(("name", "memory.parts", "clocks"), reason)
        assert good["memory"]["parts"] == {"vram": GIB, "gtt": GIB}

    def test_card_to_avoid_is_not_opened(self, cards: Any) -> None:
        cards.add(128, "0000:03:00.0", vram=GIB, gtt=GIB)
        cards.add(129, "0000:04:00.0", vram=GIB, gtt=GIB)
        avoided, asked = cards.probe("pci:0000:03:00.0")
        assert "memory" not in avoided
        assert [(f["step"], f["code"]) for f in avoided["step_facts"]] == [
            ("responding", "driver-hangs"),
        ]
        assert asked["memory"]["parts"] == {"vram": GIB, "gtt": GIB}

    def test_a_missing_node_is_told(self, cards: Any) -> None:
        cards.add(128, "0000:03:00.0")
        (cards.root / "dev/dri/renderD128").unlink()
        (card,) = cards.probe()
        assert card["unknown"]["name"] == "/dev/dri/renderD128: No such file or directory"

    def test_other_drivers_are_not_asked(self, cards: Any) -> None:
        cards.add(128, "0000:00:02.0", driver="i915")
        assert cards.probe() == ["not_applicable('no render node of the amdgpu driver')"]

    def test_without_dev_dri_nothing_raises(self, cards: Any) -> None:
        shutil.rmtree(cards.root / "dev")
        assert cards.probe() == ["not_applicable('no render node of the amdgpu driver')"]

    def test_the_library_alone_still_crashes_on_a_dead_card(self, cards: Any) -> None:
        """The guard's reason: when this fails, the library was mended and the guard may go."""
        cards.add(128, "0000:03:00.0", accel=0)
        done = cards.run("import pyamdgpuinfo; pyamdgpuinfo.GPUInfo('/dev/dri/renderD128', 0)")
        assert done.returncode == -11


def test_a_recorded_machine_is_not_opened(tmp_path: Path) -> None:
    answer = probe_devices(Request(Machine(str(tmp_path)), active=True))
    assert isinstance(answer, NotApplicable)
    assert answer.reason == "a recorded machine has no device to open"


def test_manifest_asks_for_consent() -> None:
    path = REPOSITORY / "plugins/pyamdgpuinfo/src/probe_pyamdgpuinfo/prober.json"
    manifest = json.loads(path.read_text())["probers"]["pyamdgpuinfo"]
    assert manifest["active"] is True
    assert (manifest["priority"], manifest["when"]["pci_vendor"]) == (300, ["1002"])
