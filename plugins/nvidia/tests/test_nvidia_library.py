"""The client of our own has the structures, functions and errors of nvidia-ml-py."""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from probe_core import Machine
from probe_core.api import Request, Unavailable
from probe_nvidia import causes, client, device, links, live, nvml
from probe_nvidia.scene import Scene

pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")

LAYOUTS = [
    (client.PciInfo, "nvmlPciInfo_t"),
    (client.Memory, "c_nvmlMemory_t"),
    (client.MemoryV2, "c_nvmlMemory_v2_t"),
    (client.FieldValue, "c_nvmlFieldValue_t"),
    (client.Attributes, "c_nvmlDeviceAttributes"),
]


@pytest.mark.parametrize(("ours", "name"), LAYOUTS)
def test_structures_are_those_of_nvidia_ml_py(ours: type[ctypes.Structure], name: str) -> None:
    theirs = getattr(importlib.import_module("pynvml"), name)
    assert ctypes.sizeof(ours) == ctypes.sizeof(theirs)

    def places(structure: type[ctypes.Structure]) -> list[tuple[int, int]]:
        fields = (getattr(structure, field[0]) for field in structure._fields_)
        return [(field.offset, field.size) for field in fields]

    assert places(ours) == places(theirs)


def test_functions_are_those_of_nvidia_ml_py() -> None:
    """A name that it does not have would be asked of no driver when it is the client."""
    theirs = importlib.import_module("pynvml")
    own = [name for name in dir(client.Client) if name.startswith("nvml")] + [
        *client.WRITES,
        *client.TEXTS,
        *client.COUNTED,
    ]
    assert [name for name in own if not hasattr(theirs, name)] == []
    assert len(own) > 40


ERRORS = {
    "ARGUMENT_VERSION": "ARGUMENT_VERSION_MISMATCH",
    "VERSION_MISMATCH": "LIB_RM_VERSION_MISMATCH",
}

FIELDS: dict[str, int] = {
    "ECC_CURRENT": device._ECC[0],
    "ECC_PENDING": device._ECC[1],
    "REMAPPED_UNC": device._REMAPPED[0],
    "REMAPPED_PENDING": device._REMAPPED[1],
    "REMAPPED_FAILURE": device._REMAPPED[2],
    "POWER_MAX_LIMIT": device._MAX,
    "POWER_DEFAULT_LIMIT": device._DEFAULT,
    "POWER_CURRENT_LIMIT": device._ENFORCED,
    "NVLINK_SPEED_MBPS_COMMON": links.SPEED,
    "NVLINK_LINK_COUNT": links.COUNT,
    "NVLINK_GET_STATE": links._STATE,
    "PCIE_COUNT_TX_BYTES": live._PCIE_SENT,
    "PCIE_COUNT_RX_BYTES": live._PCIE_RECEIVED,
    "NVLINK_THROUGHPUT_DATA_TX": live._NVLINK_SENT,
    "NVLINK_THROUGHPUT_DATA_RX": live._NVLINK_RECEIVED,
}
TALLIES = {
    "energy_j": ["TOTAL_ENERGY_CONSUMPTION"],
    "ecc_corrected": ["ECC_SBE_VOL_TOTAL"],
    "ecc_uncorrected": ["ECC_DBE_VOL_TOTAL"],
    "pcie_replays": ["PCIE_REPLAY_COUNTER"],
    "nvlink_crc": ["NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "NVLINK_CRC_DATA_ERROR_COUNT_TOTAL"],
    "nvlink_replays": ["NVLINK_REPLAY_ERROR_COUNT_TOTAL"],
    "nvlink_recoveries": ["NVLINK_RECOVERY_ERROR_COUNT_TOTAL"],
    "throttled_power_s": ["PERF_POLICY_POWER"],
    "throttled_thermal_s": ["PERF_POLICY_THERMAL"],
}
"""Counter to its fields."""

METRICS = {"sm": "SM_UTIL", "tensor": "ANY_TENSOR_UTIL", "memory": "DRAM_BW_UTIL"}


def test_numbers_are_those_of_nvidia_ml_py() -> None:
    theirs = importlib.import_module("pynvml")

    def number(name: str) -> int:
        value: int = getattr(theirs, name)
        return value

    errors = {name: value for name, value in vars(causes).items() if type(value) is int}
    assert errors == {n: number(f"NVML_ERROR_{ERRORS.get(n, n)}") for n in errors}
    assert {number(f"NVML_ERROR_{n}"): n for n in causes._NAMES.values()} == causes._NAMES
    assert {name: number(f"NVML_FI_DEV_{name}") for name in FIELDS} == FIELDS
    assert {name: fields for name, (fields, _) in live._TALLIES.items()} == {
        name: tuple(number(f"NVML_FI_DEV_{field}") for field in fields)
        for name, fields in TALLIES.items()
    }
    assert {m: number(f"NVML_GPM_METRIC_{name}") for m, name in METRICS.items()} == live._METRICS
    clocks = [number("NVML_CLOCK_SM"), number("NVML_CLOCK_MEM")]
    assert [device._SM, device._MEMORY] == [live._SM, live._MEMORY] == clocks
    assert number("NVML_TEMPERATURE_GPU") == live._DIE
    assert number("NVML_ERROR_TIMEOUT") == live._TIMEOUT
    assert number("nvmlEventTypeXidCriticalError") == live._XID_EVENT
    assert theirs.NVML_VALUE_NOT_AVAILABLE_ulonglong.value == live._ABSENT
    assert number("NVML_VALUE_TYPE_UNSIGNED_INT") == live._THIRTY_TWO_BITS
    assert tuple(name for name, _ in theirs.c_nvmlValue_t._fields_) == live._MEMBERS
    assert theirs.nvmlMemory_v2 == device._VERSION_2
    assert list(device._VIRTUALIZATION) == [
        number(f"NVML_GPU_VIRTUALIZATION_MODE_{name}")
        for name in ("PASSTHROUGH", "VGPU", "HOST_VGPU", "HOST_VSGA")
    ]
    assert list(links._PEERS) == [
        number(f"NVML_NVLINK_DEVICE_TYPE_{name}") for name in ("GPU", "IBMNPU", "SWITCH")
    ]
    assert list(links._FABRIC) == [
        number(f"NVML_GPU_FABRIC_STATE_{name}")
        for name in ("NOT_STARTED", "IN_PROGRESS", "COMPLETED")
    ]


CODES = {
    **{
        name: f"NVML_ERROR_{name}"
        for name in (
            *("INVALID_ARGUMENT", "NOT_SUPPORTED", "NO_PERMISSION", "NOT_FOUND"),
            *("INSUFFICIENT_SIZE", "DRIVER_NOT_LOADED", "TIMEOUT", "IRQ_ISSUE"),
            *("LIBRARY_NOT_FOUND", "FUNCTION_NOT_FOUND", "GPU_IS_LOST", "RESET_REQUIRED"),
            *("OPERATING_SYSTEM", "NO_DATA", "DEPRECATED", "UNKNOWN"),
        )
    },
    "VERSION_MISMATCH": "NVML_ERROR_LIB_RM_VERSION_MISMATCH",
    "ARGUMENT_VERSION": "NVML_ERROR_ARGUMENT_VERSION_MISMATCH",
}


@pytest.mark.parametrize("name", CODES)
def test_the_codes_of_answers_are_nvidia_ml_pys(name: str) -> None:
    theirs = getattr(importlib.import_module("pynvml"), CODES[name])
    assert getattr(causes, name) == theirs


@pytest.mark.parametrize("place", ["/usr/local/nvidia/lib64", "/usr/lib/wsl/lib", None])
def test_a_library_outside_the_loaders_path_is_loaded_from_its_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str | None
) -> None:
    """The loader is asked by name again, which the library satisfies once it is loaded."""
    for folder in (place, "/run/opengl-driver/lib"):  # where a damaged one lies
        if folder:
            (tmp_path / folder[1:]).mkdir(parents=True)
            (tmp_path / folder[1:] / client.SONAME).write_text(folder)
    loaded: list[str] = []

    def load(name: str) -> SimpleNamespace:
        if name != client.SONAME:
            if "opengl" in Path(name).read_text():
                raise OSError("file too short")
            loaded.append(name)
        if not loaded:
            raise OSError("cannot open shared object file")
        return SimpleNamespace(nvmlInitWithFlags=lambda flags: 0)

    monkeypatch.setattr(ctypes, "CDLL", load)
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    scene = Scene(Request(Machine(str(tmp_path), os="linux"), []))
    if place is None:
        with pytest.raises(Unavailable):
            nvml.start(scene)
        return
    assert isinstance(nvml.start(scene), client.Client)
    assert loaded == [f"{tmp_path}{place}/{client.SONAME}"]


def test_missing_library_has_its_code() -> None:
    own = client.Client()
    assert not hasattr(own, "nvmlDeviceSetPersistenceMode")
    if ctypes.util.find_library("nvidia-ml"):
        pytest.skip("NVIDIA's own library is installed here")
    with pytest.raises(client.NvmlError) as caught:
        own.nvmlInit()
    assert caught.value.value == 12
    assert str(caught.value) == "NVML_ERROR_LIBRARY_NOT_FOUND"


class Frozen(ctypes.CDLL):
    """PyInstaller's CDLL (pyimod03_ctypes of 6.22): in a frozen application it replaces ctypes'."""

    def __init__(self, name: str | None) -> None:
        try:
            super().__init__(name)
        except OSError as error:
            raise OSError(f"Failed to load dynlib/dll {name!r}. Most likely …") from error


def test_a_frozen_application_tells_an_absent_library_from_a_damaged_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if ctypes.util.find_library("nvidia-ml"):
        pytest.skip("NVIDIA's own library is installed here")
    monkeypatch.setattr(ctypes, "CDLL", Frozen)
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    scene = Scene(Request(Machine(str(tmp_path), os="linux"), []))
    with pytest.raises(Unavailable) as caught:
        nvml.start(scene)
    assert caught.value.code == "driver-not-installed"
