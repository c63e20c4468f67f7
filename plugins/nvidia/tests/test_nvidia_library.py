"""The client of our own has the structures, functions and errors of nvidia-ml-py."""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib

import pytest

from probe_nvidia import client

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


def test_missing_library_has_its_code() -> None:
    own = client.Client()
    assert not hasattr(own, "nvmlDeviceSetPersistenceMode")
    if ctypes.util.find_library("nvidia-ml"):
        pytest.skip("NVIDIA's own library is installed here")
    with pytest.raises(client.NvmlError) as caught:
        own.nvmlInit()
    assert caught.value.value == 12
    assert str(caught.value) == "NVML_ERROR_LIBRARY_NOT_FOUND"
