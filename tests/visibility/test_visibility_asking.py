"""The runtimes are asked for real, below their own libraries: a faked libcuda and libamdhip64."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import fake_cuda
import pytest
import visibility_nodes as nodes

from probe_core import runtimes
from probe_core.api import Request, Unavailable
from probe_core.machine import Machine
from probe_core.runtimes import cuda, disagreements, hip
from probe_core.runtimes.bus_id import bus_id
from probe_core.visibility import see


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runtimes")
    return fake_cuda.build(folder, "libcuda.so.1", "libamdhip64.so.6")


class Asked(NamedTuple):
    answers: Mapping[str, Any]
    findings: Sequence[Any]


Ask = Callable[..., Asked]


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, library: Path) -> Ask:
    """Asks runtimes whose libraries are in a folder; a child inherits where the loader looks."""

    def asked(
        devices: list[Any], *, folder: Path = library, deadline_s: float = 20, **environ: str
    ) -> Asked:
        monkeypatch.setenv("LD_LIBRARY_PATH", str(folder))
        answers = runtimes.ask(see(devices, environ), devices, environ, deadline_s=deadline_s)
        return Asked(answers, disagreements(answers))

    return asked


def listed(*devices: dict[str, Any]) -> str:
    """Return FAKE_GPUS for made-up devices."""
    told = []
    for device in devices:
        uuid = next((i[9:] for i in device["ids"] if i.startswith("uuid:")), "0" * 32)
        bus = next((i[4:] for i in device["ids"] if i.startswith("pci:")), "0000:00:00.0")
        told.append(f"{uuid.replace('-', '')}/{bus.upper()}")
    return ";".join(told)


FOUR = nodes.h100s(4)


def test_cuda_agrees(ask: Ask) -> None:
    gpus = listed(FOUR[2], FOUR[0])
    answers, said = ask(FOUR, CUDA_VISIBLE_DEVICES="2,0", FAKE_GPUS=gpus)
    expected = ["pci:0000:03:00.0", "pci:0000:01:00.0"]
    assert answers == {
        "cuda": {
            "devices": expected,
            "expected": [expected],
            "agrees": True,
            "status": "ok",
            "reason": "it shows pci:0000:03:00.0, pci:0000:01:00.0",
        }
    }
    assert said == []


def test_cuda_disagrees(ask: Ask) -> None:
    answers, said = ask(FOUR, CUDA_VISIBLE_DEVICES="2", FAKE_GPUS=listed(FOUR[1]))
    reason = "it shows pci:0000:02:00.0; by the rules it would be pci:0000:03:00.0"
    assert answers == {
        "cuda": {
            "devices": ["pci:0000:02:00.0"],
            "expected": [["pci:0000:03:00.0"]],
            "agrees": False,
            "status": "ok",
            "reason": reason,
        }
    }
    (found,) = said
    assert (found["code"], found["step"], found["why"]) == ("driver-disagrees", "runtime", reason)
    assert found["evidence"] == "cuda: pci:0000:02:00.0"


def test_nothing_visible_is_an_answer(ask: Ask) -> None:
    answers, _ = ask(FOUR, CUDA_VISIBLE_DEVICES="")
    assert (answers["cuda"]["devices"], answers["cuda"]["agrees"]) == ([], True)


def test_the_driver_decides_the_speed_order(ask: Ask) -> None:
    mixed = [nodes.nvidia(1), nodes.nvidia(2, name="NVIDIA T4")]
    answers, _ = ask(mixed, FAKE_GPUS=listed(mixed[1], mixed[0]))
    assert answers["cuda"]["devices"] == ["pci:0000:02:00.0", "pci:0000:01:00.0"]
    assert answers["cuda"]["agrees"] is True
    many = [nodes.nvidia(slot, name=f"model {slot}") for slot in range(1, 7)]
    answers, _ = ask(many, FAKE_GPUS=listed(*reversed(many)))
    assert answers["cuda"]["agrees"] is True


def test_mig_instances_are_recognised(ask: Ask) -> None:
    card = nodes.nvidia(1)
    part = nodes.mig(card, 7, 1)
    answers, _ = ask([card, part], FAKE_GPUS=listed(part | {"ids": [part["id"]]}))
    assert answers["cuda"]["devices"] == [part["id"]]
    assert answers["cuda"]["agrees"] is True


def test_a_gpu_that_no_prober_saw_is_named_as_the_runtime_names_it(ask: Ask) -> None:
    unseen = nodes.nvidia(5)
    answers, _ = ask(FOUR[:1], FAKE_GPUS=listed(FOUR[0], unseen))
    assert answers["cuda"]["devices"] == ["pci:0000:01:00.0", unseen["ids"][1]]
    assert answers["cuda"]["agrees"] is False


def test_a_runtime_that_cannot_be_asked_is_not_there(ask: Ask) -> None:
    assert ask([nodes.intel(1)]) == ({}, [])


def test_hip_agrees_by_pci_address(ask: Ask) -> None:
    cards = [nodes.amd(1), nodes.amd(2)]
    answers, said = ask(cards, HIP_VISIBLE_DEVICES="1", FAKE_GPUS=listed(cards[1]))
    assert answers["hip"]["devices"] == ["pci:0000:02:00.0"]
    assert (answers["hip"]["agrees"], said) == (True, [])


@pytest.mark.parametrize(
    ("mode", "status", "said"),
    [
        ("3", "unavailable", "cuInit answered 3"),
        ("crash", "crashed", "SIGABRT"),
        pytest.param("hang", "timeout", "took longer than 1 s", marks=pytest.mark.heavy),
    ],
)
def test_a_driver_that_fails_is_told(ask: Ask, mode: str, status: str, said: str) -> None:
    answers, found = ask(FOUR, deadline_s=1, FAKE_GPU_MODE=mode, FAKE_GPUS=listed(*FOUR))
    assert (answers["cuda"]["status"], answers["cuda"]["agrees"]) == (status, None)
    assert said in answers["cuda"]["reason"]
    assert found == []


def test_a_missing_library_is_told(ask: Ask, tmp_path: Path) -> None:
    fake_cuda.skip_beside_a_real_one()
    answers, _ = ask(FOUR, folder=tmp_path)
    assert answers["cuda"]["status"] == "unavailable"
    assert "libcuda.so.1" in answers["cuda"]["reason"]


class Library:
    """What ctypes has of libcuda or libamdhip64 with two devices, one call of which fails."""

    def __init__(self, failing: str, status: int) -> None:
        self._failing, self._status = failing, status

    def _answer(self, call: str) -> int:
        return self._status if call == self._failing else 0

    def _count(self, call: str, count: Any) -> int:
        count._obj.value = 2
        return self._answer(call)

    def _bus_id(self, call: str, text: Any, size: int, device: Any) -> int:
        assert len(text) == size
        text.value = f"00000000:0{getattr(device, 'value', device) + 1}:00.0".encode()
        return self._answer(call)

    def cuInit(self, flags: int) -> int:
        assert flags == 0
        return self._answer("cuInit")

    def cuDeviceGetCount(self, count: Any) -> int:
        return self._count("cuDeviceGetCount", count)

    def cuDeviceGet(self, device: Any, index: int) -> int:
        device._obj.value = index
        return self._answer("cuDeviceGet")

    def cuDeviceGetPCIBusId(self, text: Any, size: int, device: Any) -> int:
        return self._bus_id("cuDeviceGetPCIBusId", text, size, device)

    def cuDeviceGetUuid(self, uuid: Any, device: Any) -> int:
        uuid._obj[:] = bytes([device.value, *range(1, 16)])
        return self._answer("cuDeviceGetUuid")

    def hipInit(self, flags: int) -> int:
        assert flags == 0
        return self._answer("hipInit")

    def hipGetDeviceCount(self, count: Any) -> int:
        return self._count("hipGetDeviceCount", count)

    def hipDeviceGetPCIBusId(self, text: Any, size: int, device: Any) -> int:
        return self._bus_id("hipDeviceGetPCIBusId", text, size, device)


class NewLibrary(Library):
    """Of release 11.4 and later, which has the UUID of a MIG instance."""

    def cuDeviceGetUuid_v2(self, uuid: Any, device: Any) -> int:
        uuid._obj[:] = bytes([0xF0 | device.value, *range(1, 16)])
        return self._answer("cuDeviceGetUuid")


@pytest.fixture
def of_library(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Any]]:
    """Returns what a runtime's prober yields, where the loader finds one library."""

    def sightings(runtime: Any, library: Library, name: str) -> list[Any]:
        def loaded(wanted: str) -> Library:
            if wanted != name:
                raise OSError(f"{wanted}: cannot open shared object file")
            return library

        monkeypatch.setattr("ctypes.CDLL", loaded)
        monkeypatch.setenv("OF_THE_REQUEST", "before")
        request = Request(Machine(environ={"OF_THE_REQUEST": "after"}))
        found = list(runtime.probe_devices(request))
        assert os.environ["OF_THE_REQUEST"] == "after"  # the library reads its own process
        return found

    return sightings


TAIL = "010203-0405-0607-0809-0a0b0c0d0e0f"
PLACES = ("pci:0000:01:00.0", "pci:0000:02:00.0")


def sighting(ids: list[str], runtime: str, at: int, vendor: str) -> dict[str, Any]:
    return {"ids": ids, "kind": "gpu", "vendor": vendor, "node_index": {runtime: at}}


@pytest.mark.parametrize(
    ("library", "ids"),
    [
        (
            NewLibrary("", 0),
            [[f"uuid:GPU-f{at}{TAIL}", f"uuid:MIG-f{at}{TAIL}", PLACES[at]] for at in range(2)],
        ),
        (
            Library("", 0),
            [[f"uuid:GPU-0{at}{TAIL}", f"uuid:MIG-0{at}{TAIL}", PLACES[at]] for at in range(2)],
        ),
        (NewLibrary("cuDeviceGetUuid", 999), [[PLACES[at]] for at in range(2)]),
        (
            NewLibrary("cuDeviceGetPCIBusId", 1),
            [[f"uuid:GPU-f{at}{TAIL}", f"uuid:MIG-f{at}{TAIL}"] for at in range(2)],
        ),
        (NewLibrary("cuInit", 100), []),
    ],
    ids=["new", "old", "without-uuid", "without-address", "without-device"],
)
def test_what_libcuda_lists(
    of_library: Callable[..., list[Any]], library: Library, ids: list[list[str]]
) -> None:
    expected = [sighting(own, "cuda", at, "nvidia") for at, own in enumerate(ids)]
    assert of_library(cuda, library, "libcuda.so.1") == expected


def test_a_cuda_device_without_an_identity_has_its_number(
    of_library: Callable[..., list[Any]],
) -> None:
    class Nameless(NewLibrary):
        def cuDeviceGetPCIBusId(self, text: Any, size: int, device: Any) -> int:
            return 1

    found = of_library(cuda, Nameless("cuDeviceGetUuid", 1), "libcuda.so.1")
    assert [entry["ids"] for entry in found] == [["cuda:0"], ["cuda:1"]]


@pytest.mark.parametrize("call", ["cuInit", "cuDeviceGetCount", "cuDeviceGet"])
def test_a_call_of_libcuda_that_fails(of_library: Callable[..., list[Any]], call: str) -> None:
    with pytest.raises(Unavailable, match=f"^{call} answered 802$") as raised:
        of_library(cuda, NewLibrary(call, 802), "libcuda.so.1")
    assert raised.value.code == "cuda-error-802"


@pytest.mark.parametrize("release", [".so.7", ".so.6", ".so.5", ".so"])
def test_what_libamdhip64_lists(of_library: Callable[..., list[Any]], release: str) -> None:
    assert of_library(hip, Library("", 0), f"libamdhip64{release}") == [
        sighting([place], "hip", at, "amd") for at, place in enumerate(PLACES)
    ]


def test_a_hip_device_without_an_address_has_its_number(
    of_library: Callable[..., list[Any]],
) -> None:
    found = of_library(hip, Library("hipDeviceGetPCIBusId", 1), "libamdhip64.so.6")
    assert [entry["ids"] for entry in found] == [["hip:0"], ["hip:1"]]


@pytest.mark.parametrize("call", ["hipInit", "hipGetDeviceCount"])
def test_a_call_of_libamdhip64_that_fails(of_library: Callable[..., list[Any]], call: str) -> None:
    assert of_library(hip, Library(call, 100), "libamdhip64.so.6") == []  # hipErrorNoDevice
    with pytest.raises(Unavailable, match=r"^HIP answered 3$") as raised:
        of_library(hip, Library(call, 3), "libamdhip64.so.6")
    assert raised.value.code == "driver-error"


@pytest.mark.parametrize(
    ("runtime", "reason"),
    [
        (cuda, "libcuda.so.1: libcuda.so.1: cannot open shared object file"),
        (hip, "libamdhip64.so: cannot open shared object file"),
    ],
)
def test_a_library_that_no_folder_has(
    of_library: Callable[..., list[Any]], runtime: Any, reason: str
) -> None:
    with pytest.raises(Unavailable) as raised:
        of_library(runtime, Library("", 0), "libother.so")
    assert (str(raised.value), raised.value.code) == (reason, "library-missing")


@pytest.mark.parametrize(
    ("written", "status", "identity"),
    [
        (b"00000000:1B:00.0", 0, "pci:0000:1b:00.0"),
        (b"000f:01:00.0", 0, "pci:000f:01:00.0"),
        (b"00000000:1B:00.0", 101, None),
        (b"", 0, None),
        (b"somewhere", 0, None),
        (b"\xff\xfe:00.0", 0, None),
    ],
)
def test_what_is_no_address_names_no_device(
    written: bytes, status: int, identity: str | None
) -> None:
    def call(text: Any, size: int, device: int) -> int:
        assert (len(text), device) == (size, 3)
        text.value = written
        return status

    assert bus_id(call, 3) == identity
