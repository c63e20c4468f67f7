"""Memory to be asked every second: system, swap, dedicated, limits and overrides."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from probe_core.machine import Machine
from probe_exo import node_memory
from probe_exo.memory import MemoryReader, NodeMemory
from probe_exo.resident import FreeMemory

Make = Callable[[dict[str, str]], Machine]
GIB = 1 << 30

MEMINFO = {
    "/proc/meminfo": (
        "MemTotal: 65536000 kB\nMemFree: 1 kB\nMemAvailable: 40000000 kB\n"
        "SwapTotal: 8000000 kB\nSwapFree: 7000000 kB\n"
    )
}


def amd(slot: int, total: int) -> dict[str, Any]:
    return {
        "id": f"pci:0000:{slot:02x}:00.0",
        "kind": "gpu",
        "vendor": "amd",
        "memory": {"kind": "dedicated", "total": total, "usable": total // 2},
    }


def report(*devices: dict[str, Any]) -> dict[str, Any]:
    memory = {"total": 65_536_000 * 1024, "available": None, "limit": None}
    return {"schema": 1, "node": {"memory": memory}, "devices": list(devices)}


def read(machine: Machine, *devices: dict[str, Any], **environ: str) -> NodeMemory:
    return MemoryReader(machine, report(*devices)).read(environ)


def test_the_system_and_its_swap(machine: Make) -> None:
    found = read(machine(MEMINFO))
    assert (found.ram_total, found.ram_available) == (65_536_000 * 1024, 40_000_000 * 1024)
    assert (found.swap_total, found.swap_available) == (8_000_000 * 1024, 7_000_000 * 1024)
    assert (found.vram_total, found.vram_available, found.vram_age_s) == (None, None, None)
    assert found.unified
    assert found.reasons == {"vram_total": "no GPU with memory of its own"}


def test_a_control_group_limits_what_there_is(machine: Make) -> None:
    group = {
        "/proc/self/cgroup": "0::/box\n",
        "/sys/fs/cgroup/box/memory.max": f"{4 * GIB}\n",
        "/sys/fs/cgroup/box/memory.current": f"{GIB}\n",
    }
    found = read(machine(MEMINFO | group))
    assert (found.ram_total, found.ram_available) == (4 * GIB, 3 * GIB)
    assert "control group" in found.reasons["ram_total"]


def test_free_memory_of_amd_gpus_is_read_anew(machine: Make) -> None:
    folder = "/sys/bus/pci/devices"
    files = {
        f"{folder}/0000:03:00.0/mem_info_vram_used": f"{2 * GIB}\n",
        f"{folder}/0000:04:00.0/mem_info_vram_used": f"{3 * GIB}\n",
    }
    here = machine(MEMINFO | files)
    reader = MemoryReader(here, report(amd(3, 24 * GIB), amd(4, 16 * GIB)))
    found = reader.read({})
    assert (found.vram_total, found.vram_available) == (40 * GIB, 35 * GIB)
    assert (found.vram_age_s, found.unified) == (0.0, False)
    machine({f"{folder}/0000:03:00.0/mem_info_vram_used": f"{20 * GIB}\n"})
    assert reader.read({}).vram_available == 17 * GIB


def test_free_memory_that_cannot_be_read_anew_tells_its_age(machine: Make) -> None:
    reader = MemoryReader(machine(MEMINFO), report(amd(3, 24 * GIB)))
    time.sleep(0.01)
    found = reader.read({})
    assert (found.vram_total, found.vram_available) == (24 * GIB, 12 * GIB)
    assert found.vram_age_s is not None
    assert found.vram_age_s >= 0.01


def test_override_is_what_is_available(machine: Make) -> None:
    found = read(machine(MEMINFO), OVERRIDE_MEMORY_MB="1024")
    assert (found.ram_total, found.ram_available) == (65_536_000 * 1024, GIB)
    assert found.reasons["ram_available"] == "OVERRIDE_MEMORY_MB=1024"
    ignored = read(machine(MEMINFO), OVERRIDE_MEMORY_MB="lots")
    assert ignored.ram_available == 40_000_000 * 1024
    assert "is ignored" in ignored.reasons["ram_available"]


@pytest.mark.parametrize(
    ("text", "available"),
    [
        ("1", 1 << 20),
        ("0", None),
        (f"{(1 << 40) - 1}", ((1 << 40) - 1) << 20),
        (f"{1 << 40}", None),
        ("1024".rjust(20, "0"), GIB),
        ("1024".rjust(21, "0"), None),
        ("²", None),
    ],
)
def test_an_override_is_a_number_of_mib(machine: Make, text: str, available: int | None) -> None:
    found = read(machine(MEMINFO), OVERRIDE_MEMORY_MB=text)
    assert found.ram_available == (40_000_000 * 1024 if available is None else available)


def unified(total: int | None) -> dict[str, Any]:
    memory = {"kind": "unified", "total": total}
    return {"id": "g", "kind": "gpu", "vendor": "apple", "memory": memory}


@pytest.mark.parametrize(
    ("files", "reach", "counted"),
    [
        (MEMINFO, 8 * GIB, (8 * GIB, 8 * GIB)),
        (MEMINFO, 50 * GIB, (50 * GIB, 40_000_000 * 1024)),
        (MEMINFO, 65_536_000 * 1024, (65_536_000 * 1024, 40_000_000 * 1024)),
        (MEMINFO, None, (65_536_000 * 1024, 40_000_000 * 1024)),
        ({"/x": ""}, 8 * GIB, (8 * GIB, 8 * GIB)),
        ({"/proc/meminfo": "MemTotal: 65536000 kB\n"}, 8 * GIB, (8 * GIB, None)),
    ],
    ids=range(6),
)
def test_a_gpu_that_shares_memory_counts_what_it_reaches(
    machine: Make, files: dict[str, str], reach: int | None, counted: tuple[int, int | None]
) -> None:
    found = MemoryReader(machine(files), report(unified(reach))).read({}, 1.0)
    assert (found.counted_total, found.counted_available) == counted
    is_less = counted[0] < 65_536_000 * 1024 and "/x" not in files
    why = "the GPU reaches no more of the system's memory" if is_less else None
    assert found.reasons.get("counted_total") == why


def test_nothing_readable_is_unknown(machine: Make) -> None:
    found = MemoryReader(machine({"/x": ""}), {"schema": 1, "devices": []}).read({})
    assert (found.ram_total, found.ram_available, found.swap_total) == (None, None, None)


def test_this_node_is_cheap_to_ask(given: Callable[..., None]) -> None:
    given()
    assert (node_memory().ram_total or 0) > 0
    rounds = []
    for _ in range(20):
        start = time.perf_counter()
        for _ in range(5):
            node_memory()
        rounds.append((time.perf_counter() - start) / 5)
    # 200 µs is the promise, which the benchmark holds it to; a busy machine gets ten times that,
    # and the best of twenty rounds, in which it may have done nothing else.
    assert min(rounds) < 2e-3


def test_many_threads_get_the_same(given: Callable[..., None]) -> None:
    given()
    found: list[int | None] = []
    threads = [
        threading.Thread(target=lambda: found.append(node_memory().ram_total)) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1


@pytest.mark.parametrize("devices", [[None], [{"id": 7}], "text", None])
def test_a_senseless_report_is_no_gpu(machine: Make, devices: Any) -> None:
    found = MemoryReader(machine(MEMINFO), {"schema": 1, "devices": devices}).read({})
    assert found.vram_total is None


def test_what_counts_together_is_the_gpus_memory_or_the_systems(machine: Make) -> None:
    here = machine(MEMINFO)
    own = read(here, amd(3, 24 * GIB))
    assert (own.counted_total, own.counted_available) == (24 * GIB, 12 * GIB)
    assert [(gpu.id, gpu.available) for gpu in own.accelerators] == [("pci:0000:03:00.0", 12 * GIB)]
    none = read(here)
    assert (none.counted_total, none.counted_available) == (none.ram_total, none.ram_available)
    assert none.accelerators == ()
    told = read(here, amd(3, 24 * GIB), OVERRIDE_MEMORY_MB="1024")
    assert (told.counted_total, told.counted_available) == (24 * GIB, GIB)


class Rounds:
    """Samplers that tell what a test puts into `used`."""

    def __init__(self, used: dict[str, int | None]) -> None:
        self.used = used
        self.looks = 0
        self.opened = 0
        self.closed = threading.Event()

    def __call__(self, interval: float) -> Rounds:
        assert interval == 0.1
        self.opened += 1
        self.closed.clear()
        return self

    def __enter__(self) -> Rounds:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed.set()

    def __next__(self) -> Any:
        self.looks += 1
        return SimpleNamespace(documents=[self.sample(id_) for id_ in self.used])

    def sample(self, id_: str) -> dict[str, Any]:
        used = self.used[id_]
        status = "asleep" if used is None else "ok"
        return {"device": id_, "status": status, "memory": {"total": 10, "used": used}}


def free_of(readings: Any) -> dict[str, int]:
    return {id_: reading.available for id_, reading in readings.items()}


def test_a_read_looks_anew_where_the_last_look_is_older() -> None:
    rounds = Rounds({"a": 4, "b": None})
    free = FreeMemory(["a", "b"], rounds)
    try:
        assert free_of(free.read(60.0)) == {"a": 6}
        rounds.used["a"] = 9
        assert free_of(free.read(60.0)) == {"a": 6}
        assert free_of(free.read(0.0)) == {"a": 1}
        assert free_of(free.read(60.0)) == {"a": 1}
        rounds.used["a"] = 12  # more than there is: nothing is free
        assert free_of(free.read(0.0)) == {"a": 0}
        assert rounds.opened == 1
    finally:
        free.close()
    assert rounds.closed.is_set()


def test_readings_are_kept_while_a_gpu_sleeps_and_tell_their_age() -> None:
    rounds = Rounds({"a": 4})
    free = FreeMemory(["a"], rounds)
    try:
        awake = free.read(0.0)["a"]
        rounds.used["a"] = None
        assert free.read(0.0)["a"] == awake
        assert rounds.looks >= 2
    finally:
        free.close()


def test_after_its_end_a_read_starts_the_samplers_again() -> None:
    rounds = Rounds({"a": 4})
    free = FreeMemory(["a"], rounds)
    free.read(0.0)
    free.close()
    rounds.used["a"] = 5
    try:
        assert free_of(free.read(0.0)) == {"a": 5}
        assert rounds.opened == 2
    finally:
        free.close()


def test_many_threads_share_one_look_and_none_sees_an_older_one() -> None:
    rounds = Rounds({"a": 0})
    free = FreeMemory(["a"], rounds)
    seen: list[int] = []
    try:
        free.read(0.0)
        rounds.used["a"] = 7
        threads = [
            threading.Thread(target=lambda: seen.append(free.read(0.0)["a"].available))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        free.close()
    assert seen == [3] * 8


def test_what_a_driver_keeps_for_itself_is_not_free(machine: Make) -> None:
    memory = {"kind": "dedicated", "total": 10, "free": 9, "parts": {"reserved": 3}}
    card = {"id": "g", "kind": "gpu", "vendor": "nvidia", "memory": memory}
    rounds = Rounds({"g": 2})
    free = FreeMemory(["g"], rounds)
    reader = MemoryReader(machine(MEMINFO), report(card), free)
    assert reader.needs_samplers()
    try:
        found = reader.read({}, 0.0)
        assert (found.vram_total, found.vram_available) == (10, 10 - 2 - 3)
        assert found.vram_age_s is not None
        assert 0.0 <= found.vram_age_s < 0.9
        rounds.used["g"] = 8
        assert reader.read({}, 0.0).vram_available == 0
        assert reader.read({}).vram_available == 9  # without an age it is what the probe saw
    finally:
        free.close()


def test_no_room_for_a_thread_costs_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", full)
    assert FreeMemory(["a"], Rounds({"a": 1})).read(1.0) == {}


def test_samplers_that_cannot_start_cost_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[object] = []
    monkeypatch.setattr(threading, "excepthook", raised.append)

    def refused(interval: float) -> Any:
        raise OSError("no process")

    free = FreeMemory(["a"], refused)
    assert free.read(1.0) == {}
    free.close()
    assert raised == []
