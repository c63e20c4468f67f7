"""Which nodes the library is given, and what becomes of its answers, with a library of Python.

`test_pyamdgpuinfo_fake` has the real one, which needs a process of its own.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import stat
import sys
from array import array
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from probe_core.api import Machine, NotApplicable, Request, Unavailable
from probe_core.testing.stage import Staged
from probe_pyamdgpuinfo.prober import probe_devices

GIB = 1 << 30
NODE = "/dev/dri/renderD128"
FIELDS = ("name", "memory.parts", "clocks")


class Kernel:
    """What the kernel says of a node that is opened."""

    def __init__(self) -> None:
        self.mode, self.major = stat.S_IFCHR | 0o660, 226
        self.version, self.works = 3, 1
        self.error: OSError | None = None
        self.opened: list[str] = []
        self.closed = 0

    def ioctl(self, handle: int, request: int, argument: bytearray | array[int]) -> int:
        if request == 0xC0406400:  # DRM_IOCTL_VERSION
            assert isinstance(argument, bytearray)
            assert len(argument) == 64
            argument[:4] = self.version.to_bytes(4, "little", signed=True)
            argument[4:8] = b"\xff" * 4  # the minor version
            return 0
        assert request == 0x40206445  # DRM_IOCTL_AMDGPU_INFO
        place, size_and_query, *rest = argument
        assert (size_and_query, rest) == (4, [0, 0])  # AMDGPU_INFO_ACCEL_WORKING is 0
        ctypes.c_uint32.from_address(place).value = self.works
        return 0


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    kernel = Kernel()
    real_stat, real_open, real_close = os.stat, os.open, os.close
    handles: set[int] = set()

    def status(path: Any, **options: Any) -> Any:
        if not str(path).startswith("/dev/dri/"):
            return real_stat(path, **options)
        return SimpleNamespace(st_mode=kernel.mode, st_rdev=os.makedev(kernel.major, 128))

    def opened(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
        if not str(path).startswith("/dev/dri/"):
            return real_open(path, flags, *arguments, **options)
        if kernel.error:
            raise kernel.error
        assert flags == os.O_RDWR | os.O_CLOEXEC
        kernel.opened.append(str(path))
        handle = real_open(os.devnull, os.O_RDONLY)
        handles.add(handle)
        return handle

    def closed(handle: int) -> None:
        kernel.closed += handle in handles
        handles.discard(handle)
        real_close(handle)

    monkeypatch.setattr(os, "stat", status)
    monkeypatch.setattr(os, "open", opened)
    monkeypatch.setattr(os, "close", closed)
    monkeypatch.setattr(fcntl, "ioctl", kernel.ioctl)
    return kernel


def a_card(**changed: Any) -> SimpleNamespace:
    """What the library makes of a node."""
    answers: dict[str, Any] = {
        "name": "AMD Radeon RX 7900 XTX",
        "memory_info": {"vram_size": 24 * GIB, "gtt_size": 32 * GIB},
        "query_max_clocks": lambda: {"sclk_max": 2_482_999_999, "mclk_max": 1_249_000_000},
        "query_vram_usage": lambda: GIB,
        "query_gtt_usage": lambda: 4096,
    }
    return SimpleNamespace(**{**answers, **changed})


def refused(*_: object) -> Any:
    raise RuntimeError("ioctl failed")


class Place:
    """A machine whose cards the library sees."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.made = root, list[tuple[str, int]]()
        self.card = a_card()
        library: Any = ModuleType("pyamdgpuinfo")
        library.GPUInfo = self._make
        monkeypatch.setitem(sys.modules, "pyamdgpuinfo", library)

    def _make(self, path: str, index: int) -> SimpleNamespace:
        self.made.append((path, index))
        return self.card

    def add(self, minor: int, address: str, driver: str = "amdgpu", status: str = "active") -> None:
        device = self.root / "sys/devices/pci0000:00" / address
        node = device / f"drm/renderD{minor}"
        node.mkdir(parents=True)
        (device / "power").mkdir()
        (device / "power/runtime_status").write_text(f"{status}\n")
        (self.root / f"sys/bus/pci/drivers/{driver}").mkdir(parents=True, exist_ok=True)
        os.symlink(f"../../../bus/pci/drivers/{driver}", device / "driver")
        os.symlink(f"../../../{address}", node / "device")
        for folder, name in (
            ("bus/pci/devices", address),
            ("class/drm", f"renderD{minor}"),
            ("dev/char", f"226:{minor}"),
        ):
            place = self.root / "sys" / folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            target = device if name == address else node
            os.symlink(os.path.relpath(target, place.parent), place)

    def probe(self, **options: Any) -> list[Any]:
        answer = probe_devices(Request(Staged(Machine(str(self.root))), active=True, **options))
        return [answer] if isinstance(answer, NotApplicable) else list(answer)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernel: Kernel) -> Place:
    place = Place(tmp_path, monkeypatch)
    place.add(128, "0000:03:00.0")
    return place


WHOLE = {
    "ids": ["pci:0000:03:00.0"],
    "kind": "gpu",
    "vendor": "amd",
    "node_index": {"drm_render": 128},
    "name": "AMD Radeon RX 7900 XTX",
    "memory": {"parts": {"vram": 24 * GIB, "gtt": 32 * GIB}},
    "clocks": {"max_mhz": 2482, "memory_max_mhz": 1249},
    "extra": {"vram_used": GIB, "gtt_used": 4096},
    "unknown": {"memory.total": "the library does not tell a card from an APU: see the parts"},
}


def test_a_node_is_asked_and_closed_before_the_library_is(place: Place, kernel: Kernel) -> None:
    assert place.probe() == [WHOLE]
    assert (kernel.opened, kernel.closed, place.made) == ([NODE], 1, [(NODE, 0)])


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"mode": stat.S_IFREG}, f"{NODE} is not a DRM device"),
        ({"major": 195}, f"{NODE} is not a DRM device"),
        ({"version": 2}, f"{NODE} speaks interface 2, libdrm_amdgpu wants 3"),
        ({"version": -1}, f"{NODE} speaks interface -1, libdrm_amdgpu wants 3"),
        ({"works": 0}, f"{NODE}: the driver reports that it cannot compute"),
        ({"error": PermissionError(13, "Permission denied")}, f"{NODE}: Permission denied"),
        ({"error": OSError("odd")}, f"{NODE}: odd"),
    ],
    ids=range(7),
)
def test_a_node_that_the_library_must_not_have(
    changed: dict[str, Any], reason: str, place: Place, kernel: Kernel
) -> None:
    vars(kernel).update(changed)
    (card,) = place.probe()
    assert card["unknown"] == dict.fromkeys(FIELDS, reason)
    assert (place.made, kernel.closed) == ([], len(kernel.opened))


def test_a_card_that_sleeps_or_is_avoided_is_not_opened(place: Place, kernel: Kernel) -> None:
    place.add(129, "0000:04:00.0", status="suspended")
    place.add(130, "0000:05:00.0", driver="nouveau")
    first, second = place.probe(avoid=["pci:0000:03:00.0"])
    assert first["step_facts"][0]["code"] == "driver-hangs"
    assert second["unknown"]["name"].startswith("suspended (power/runtime_status)")
    assert (kernel.opened, place.made) == ([], [])


def test_of_several_cards_each_has_its_place(place: Place) -> None:
    place.add(129, "0000:04:00.0")
    touched: list[object] = []
    cards = place.probe(announce=lambda kind, device: touched.append(device))
    assert [card["node_index"]["drm_render"] for card in cards] == [128, 129]
    assert place.made == [(NODE, 0), ("/dev/dri/renderD129", 1)]
    assert set(touched) == {"pci:0000:03:00.0", "pci:0000:04:00.0"}


def test_without_what_libdrm_needs_it_is_not_asked(place: Place, kernel: Kernel) -> None:
    (place.root / "sys/dev/char/226:128").unlink()
    (card,) = place.probe()
    reason = "/sys/dev/char is not there, and libdrm needs it"
    assert card["unknown"] == dict.fromkeys(FIELDS, reason)
    assert kernel.opened == []


NO_NAME = "the library's amdgpu.ids has no name for the card"
NO_MAXIMUM = "the driver gives no maximum"


@pytest.mark.parametrize(
    ("changed", "missing", "unknown"),
    [
        ({"name": None}, ["name"], {"name": NO_NAME}),
        ({"name": "AMD Radeon Graphics"}, ["name"], {"name": NO_NAME}),
        (
            {"memory_info": {}},
            ["memory"],
            {"memory.parts": "the driver did not answer AMDGPU_INFO_VRAM_GTT"},
        ),
        (
            {"query_max_clocks": lambda: {"sclk_max": 999_999}},
            ["clocks"],
            {"clocks.max_mhz": NO_MAXIMUM, "clocks.memory_max_mhz": NO_MAXIMUM},
        ),
        (
            {"query_vram_usage": refused, "query_gtt_usage": refused},
            ["extra"],
            {
                "extra.vram_used": "the driver did not answer",
                "extra.gtt_used": "the driver did not answer",
            },
        ),
    ],
    ids=range(5),
)
def test_a_figure_that_the_library_lacks_has_its_reason(
    changed: dict[str, Any], missing: list[str], unknown: dict[str, str], place: Place
) -> None:
    place.card = a_card(**changed)
    (card,) = place.probe()
    expected = {name: value for name, value in WHOLE.items() if name not in missing}
    whole: Any = WHOLE["unknown"]
    assert card == expected | {"unknown": whole | unknown}


def test_a_clock_of_one_megahertz_is_one(place: Place) -> None:
    place.card = a_card(query_max_clocks=lambda: {"sclk_max": 1_000_000, "mclk_max": 0})
    (card,) = place.probe()
    assert card["clocks"] == {"max_mhz": 1}


@pytest.mark.parametrize("error", [OSError("gone"), RuntimeError("gone"), ValueError("gone")])
def test_a_card_that_fails_hides_no_other(place: Place, error: Exception) -> None:
    place.add(129, "0000:04:00.0")

    def clocks() -> dict[str, int]:
        if place.made[-1][1] == 0:
            raise error
        return {"sclk_max": 2_482_000_000}

    place.card = a_card(query_max_clocks=clocks)
    first, second = place.probe()
    reason = f"pyamdgpuinfo failed on {NODE}: gone"
    assert first["unknown"] == dict.fromkeys(FIELDS, reason)
    assert second["clocks"] == {"max_mhz": 2482}


def test_without_the_library_it_is_unavailable(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyamdgpuinfo", None)
    with pytest.raises(Unavailable) as raised:
        place.probe()
    assert raised.value.code == "library-missing"
    assert raised.value.fix == "pip install pyamdgpuinfo (Linux on x86-64 only)"


def test_without_a_node_it_does_not_apply(place: Place) -> None:
    (place.root / "sys/class/drm/renderD128").unlink()
    (answer,) = place.probe()
    assert answer.reason == "no render node of the amdgpu driver"
