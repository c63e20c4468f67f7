"""Live figures of Windows, from a stand-in for pdh.dll in C and one for the registry."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sampled_here import Round, sample_here

from probe_core.testing import Case, Machine
from probe_windows import prober

FOLDER = Path(__file__).parent
LUID = "luid_0x00000000_0x0000d0b1"
DIRECTX = r"[HKEY_LOCAL_MACHINE\SOFTWARE\Microsoft\DirectX"
ENTRY = """
{place}\\{{{guid}}}]
"VendorId"=dword:{vendor:08x}
"DeviceId"=dword:{device:08x}
"AdapterLuid"=hex(b):{luid},00,00,00,00,00,00
"LastSeen"=hex(b):{seen},00,00,00,00,00,00,00
"""
ENGINES, PROCESSES, ADAPTERS = (
    r"\GPU Engine(*)\Utilization Percentage",
    r"\GPU Process Memory(*)\Dedicated Usage",
    r"\GPU Adapter Memory(*)\Dedicated Usage",
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler or sys.platform != "linux":
        pytest.skip("needs Linux and a C compiler for the stand-in")
    built = tmp_path_factory.mktemp("pdh") / "pdh.dll"
    source = FOLDER / "pdh.c"
    flags = ["-shared", "-fPIC", "-fvisibility=hidden"]
    subprocess.run([compiler, *flags, "-o", built, source], check=True)
    return built


@pytest.fixture
def case(tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch) -> Case:
    """A machine whose registry and counters this process finds; `winreg` reads the export once."""
    registry = (FOLDER / "exports/desktop-amd.reg").read_text()
    registry += f'\n{DIRECTX}]\n"LastSeen"=hex(b):02,00,00,00,00,00,00,00\n'
    for number, (luid, seen) in enumerate((("b1,d0", "02"), ("77,77", "01"))):
        registry += ENTRY.format(
            place=DIRECTX, guid=number, vendor=0x1002, device=0x744C, luid=luid, seen=seen
        )
    (tmp_path / "x.reg").write_text(registry)
    copy = tmp_path / "pdh.dll"  # which keeps what was opened for itself
    shutil.copy(library, copy)
    real = ctypes.CDLL

    def found(wanted: str, *arguments: Any, **options: Any) -> ctypes.CDLL:
        return real(str(copy) if wanted == "pdh.dll" else wanted, *arguments, **options)

    monkeypatch.setattr(ctypes, "CDLL", found)
    monkeypatch.setenv("STANDIN_REG", str(tmp_path / "x.reg"))
    monkeypatch.setenv("FAKE_PDH", str(tmp_path / "counters"))
    monkeypatch.syspath_prepend(str(FOLDER / "standin"))
    monkeypatch.delitem(sys.modules, "winreg", raising=False)
    yield Case(Machine(str(tmp_path), os="windows"), live=True)  # type: ignore[misc]
    sys.modules.pop("winreg", None)


def looks(case: Case, *lines: tuple[str, str, float]) -> list[Round]:
    text = "".join(f"{path}|{name}|{value}\n" for path, name, value in lines)
    Path(case.machine.root, "counters").write_text(text)
    return sample_here(prober, case)


def test_the_busiest_engine_counts_and_not_their_sum(case: Case) -> None:
    engine = f"pid_{{}}_{LUID}_phys_0_eng_{{}}_engtype_3D"
    first, second = looks(
        case,
        (ENGINES, engine.format(4, 0), 40.0),
        (ENGINES, engine.format(5, 0), 20.0),
        (ENGINES, engine.format(5, 1), 58.0),
        (ENGINES, "pid_5_luid_0x00000000_0x00007777_phys_0_eng_0_engtype_3D", 99.0),
        (ADAPTERS, f"{LUID}_phys_0", 2 << 30),
        (PROCESSES, f"pid_5_{LUID}_phys_0", 1 << 30),
    )
    assert (first.status, second.status) == ("ok", "ok"), second.reason
    (before,), (sample,) = first.samples, second.samples
    assert "busy" not in before
    assert before["unknown"]["busy"] == "a rate needs two readings"
    assert sample["device"] == "pci:0000:03:00.0"
    assert sample["busy"] == pytest.approx(0.6)
    assert sample["memory"]["used"] == 2 << 30
    assert sample["processes"] == [{"pid": 5, "memory": 1 << 30}]


def test_without_counters_it_is_unavailable(case: Case) -> None:
    Path(case.machine.root, "pdh.dll").unlink()
    (first, *_) = looks(case)
    assert first.status == "unavailable"
    assert first.reason
    assert "pdh.dll" in first.reason


def test_an_adapter_that_the_table_lacks_is_not_guessed(case: Case) -> None:
    path = Path(case.machine.root, "x.reg")
    path.write_text(path.read_text().replace("0000744c", "00001111"))
    assert looks(case)[0].status == "not_applicable"
