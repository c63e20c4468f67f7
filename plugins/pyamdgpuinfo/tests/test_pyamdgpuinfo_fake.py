"""Runs the real library on cards that are not there, and on what used to crash it."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from probe_core.api import Machine, NotApplicable, Request
from probe_pyamdgpuinfo.prober import probe_devices

REPOSITORY = Path(__file__).parents[3]
FAKES = REPOSITORY / "tests" / "fakes"
SOURCES = [FAKES / "drm" / "fake_root.c", FAKES / "amdgpu" / "fake_amdgpu.c"]
COMPILER = shutil.which("cc") or shutil.which("gcc")
GIB = 1 << 30

needs_fakes = [
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the library is x86-64 only"),
    pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the fakes need glibc"),
    pytest.mark.skipif(not COMPILER, reason="no C compiler for the fake driver"),
    pytest.mark.skipif(
        importlib.util.find_spec("pyamdgpuinfo") is None, reason="pyamdgpuinfo is not installed"
    ),
]

CHILD = """
import json, sys
sys.path[:0] = json.loads(sys.argv[1])
from probe_core.api import Machine, NotApplicable, Request
from probe_pyamdgpuinfo.prober import probe_devices
said = probe_devices(Request(Machine(), active=True))
found = [repr(said)] if isinstance(said, NotApplicable) else []
for one in (() if found else said):
    found.append(one)
print(json.dumps(found))
"""


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The two fakes as one library to preload."""
    built = tmp_path_factory.mktemp("fakes") / "libfakedrm.so"
    command = [str(COMPILER), "-shared", "-fPIC", "-O1", "-o", str(built), *map(str, SOURCES)]
    subprocess.run([*command, "-ldl"], check=True)
    return built


class Cards:
    """A /sys and /dev/dri with render nodes; `probe` asks the real library about them."""

    def __init__(self, root: Path, driver: Path) -> None:
        self.root = root
        self.driver = driver
        self.write("usr/share/libdrm/amdgpu.ids", "1.0.0\n744C,\tC8,\tAMD Radeon RX 7900 XTX\n")
        (root / "dev/dri").mkdir(parents=True)
        (root / "sys/class/drm").mkdir(parents=True)

    def write(self, path: str, text: str) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def add(
        self,
        minor: int,
        address: str,
        *,
        driver: str = "amdgpu",
        status: str = "active",
        content: str = "",
        **answers: int,
    ) -> None:
        device = f"sys/devices/pci0000:00/{address}"
        node = f"{device}/drm/renderD{minor}"
        self.write(f"{device}/power/runtime_status", status + "\n")
        self.write(f"{node}/dev", f"226:{minor}\n")
        self.write(f"sys/bus/pci/drivers/{driver}/bind", "")
        self.write("sys/bus/pci/devices/.keep", "")
        self.write("sys/dev/char/.keep", "")
        os.symlink(f"../../../bus/pci/drivers/{driver}", self.root / device / "driver")
        os.symlink(f"../../../{address}", self.root / node / "device")
        os.symlink(f"../../../{device[4:]}", self.root / f"sys/bus/pci/devices/{address}")
        os.symlink(f"../../{node[4:]}", self.root / f"sys/class/drm/renderD{minor}")
        os.symlink(f"../../{node[4:]}", self.root / f"sys/dev/char/226:{minor}")
        self.write(f"dev/dri/renderD{minor}", content)
        lines = "".join(f"{name} {number}\n" for name, number in answers.items())
        self.write(f"fake/renderD{minor}", lines)

    def run(self, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        environ = os.environ | {"LD_PRELOAD": str(self.driver), "FAKE_ROOT": str(self.root)}
        return subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env=environ,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    def probe(self) -> list[Any]:
        done = self.run(CHILD, json.dumps(sys.path))
        assert done.returncode == 0, done.stderr
        found: list[Any] = json.loads(done.stdout)
        return found


@pytest.fixture
def cards(tmp_path: Path, driver: Path) -> Cards:
    return Cards(tmp_path, driver)


def mark(*tests: pytest.MarkDecorator) -> Any:
    """Apply all preconditions of the fakes to one class."""

    def apply(target: Any) -> Any:
        for test in tests:
            target = test(target)
        return target

    return apply


@mark(*needs_fakes)
class TestRealLibrary:
    def test_a_card_has_name_memory_and_clocks(self, cards: Cards) -> None:
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

    def test_each_of_several_cards_has_its_own_numbers(self, cards: Cards) -> None:
        for place in range(4):
            cards.add(128 + place, f"0000:{place + 3:02x}:00.0", vram=(place + 1) * GIB, gtt=GIB)
        found = cards.probe()
        assert [one["memory"]["parts"]["vram"] for one in found] == [
            GIB, 2 * GIB, 3 * GIB, 4 * GIB,
        ]  # fmt: skip

    def test_a_card_without_a_name_or_clocks_says_so(self, cards: Cards) -> None:
        cards.add(128, "0000:03:00.0", device=0x9999, vram=GIB, gtt=GIB, sclk_khz=0, mclk_khz=0)
        (card,) = cards.probe()
        assert "name" not in card
        assert "clocks" not in card
        assert card["unknown"]["name"] == "the library's amdgpu.ids has no name for the card"
        assert card["unknown"]["clocks.max_mhz"] == "the driver gives no maximum"

    @pytest.mark.parametrize(
        ("odd", "reason"),
        [
            ({"content": "not a device"}, "/dev/dri/renderD128 is not a DRM device"),
            ({"accel": 0}, "/dev/dri/renderD128: the driver says it cannot compute"),
            ({"fail_query": 0}, "/dev/dri/renderD128: Input/output error"),
            ({"fail_query": 0, "errno": 19}, "/dev/dri/renderD128: No such device"),
            ({"major": 2}, "/dev/dri/renderD128 speaks interface 2, libdrm_amdgpu wants 3"),
            ({"status": "suspended"},
             "asleep (runtime-suspended): opening its node would wake it"),
        ],
    )  # fmt: skip
    def test_a_bad_card_is_told_and_hides_no_other(
        self, cards: Cards, odd: dict[str, Any], reason: str
    ) -> None:
        cards.add(128, "0000:03:00.0", **odd)
        cards.add(129, "0000:04:00.0", vram=GIB, gtt=GIB)
        bad, good = cards.probe()
        assert bad["unknown"] == dict.fromkeys(("name", "memory.parts", "clocks"), reason)
        assert good["memory"]["parts"] == {"vram": GIB, "gtt": GIB}

    def test_a_missing_node_is_told(self, cards: Cards) -> None:
        cards.add(128, "0000:03:00.0")
        (cards.root / "dev/dri/renderD128").unlink()
        (card,) = cards.probe()
        assert card["unknown"]["name"] == "/dev/dri/renderD128: No such file or directory"

    def test_other_drivers_are_not_asked(self, cards: Cards) -> None:
        cards.add(128, "0000:00:02.0", driver="i915")
        assert cards.probe() == ["not_applicable('no render node of the amdgpu driver')"]

    def test_without_dev_dri_nothing_raises(self, cards: Cards) -> None:
        shutil.rmtree(cards.root / "dev")
        assert cards.probe() == ["not_applicable('no render node of the amdgpu driver')"]

    def test_the_library_alone_still_crashes_on_a_dead_card(self, cards: Cards) -> None:
        """The guard's reason: when this fails, the library was mended and the guard may go."""
        cards.add(128, "0000:03:00.0", accel=0)
        done = cards.run("import pyamdgpuinfo; pyamdgpuinfo.GPUInfo('/dev/dri/renderD128', 0)")
        assert done.returncode == -11


def test_a_recorded_machine_is_not_opened(tmp_path: Path) -> None:
    said = probe_devices(Request(Machine(str(tmp_path)), active=True))
    assert isinstance(said, NotApplicable)
    assert said.reason == "a recorded machine has no device to open"


def test_manifest_asks_for_consent() -> None:
    path = REPOSITORY / "plugins/pyamdgpuinfo/src/probe_pyamdgpuinfo/prober.json"
    manifest = json.loads(path.read_text())["probers"]["pyamdgpuinfo"]
    assert manifest["active"] is True
    assert (manifest["priority"], manifest["when"]["pci_vendor"]) == (300, ["1002"])
