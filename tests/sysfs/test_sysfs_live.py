"""What samplers read: rates of counters, users of processes, fdinfo from one sweep to the next."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from probe_core.sysfs.drm_use import DrmUse
from probe_core.sysfs.live import Live, share
from probe_core.sysfs.rates import MAX_KEYS, NEEDS_TWO, WENT_BACK, Rates
from probe_core.sysfs.sighting import AVOIDED, Draft
from probe_core.sysfs.users import Users
from probe_core.testing import Tree


def test_a_rate_needs_two_readings_and_no_step_back() -> None:
    rates = Rates()
    assert rates.per_second("x", 100, 10.0) is None
    assert rates.reason == NEEDS_TWO
    assert rates.per_second("x", 300, 12.0) == 100
    assert rates.per_second("x", 50, 13.0) is None
    assert rates.reason == WENT_BACK
    assert rates.per_second("x", 60, 14.0) == 10  # null once
    assert rates.per_second("y", 60, 14.0) is None
    assert rates.reason == NEEDS_TWO


def test_a_counter_that_wraps_is_mended() -> None:
    rates = Rates()
    rates.per_second("x", 250, 0.0, wrap=256)
    assert rates.per_second("x", 4, 1.0, wrap=256) == 10
    assert rates.per_second("x", 4.5, 2.0, wrap=256) == 0.5
    assert rates.per_second("x", 4.5, 3.0, wrap=256) == 0
    assert rates.per_second("x", 4.75, 4.0) == 0.25


def test_the_same_reading_twice_is_none() -> None:
    rates = Rates()
    rates.per_second("x", 100, 10.0)
    assert rates.per_second("x", 100, 10.0) is None
    for at in (10.0, 9.0):
        assert rates.per_second("x", 150, at) is None
        assert rates.reason == NEEDS_TWO
    assert rates.per_second("x", 200, 11.0) == 100  # from the first reading
    rates.forget()
    assert rates.per_second("x", 300, 12.0) is None


def test_no_more_counters_are_remembered_than_there_is_room_for() -> None:
    rates = Rates()
    for key in range(MAX_KEYS + 1):
        rates.per_second(key, 0, 1.0)
    last = (MAX_KEYS - 1, MAX_KEYS)
    assert [rates.per_second(key, 5, 2.0) for key in last] == [5.0, None]
    assert [rates.per_second(key, 8, 3.0) for key in last] == [3.0, None]


@pytest.mark.parametrize(
    ("value", "expected"), [(0.5, 0.5), (1.04, 1.0), (1.2, None), (-0.1, None), (None, None)]
)
def test_a_computed_share(value: float | None, expected: float | None) -> None:
    assert share(value) == expected


def test_a_file_that_refuses_has_its_errno(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.file("/sys/busy", "junk\n")
    tree.file("/sys/good", "42\n")
    (tmp_path / "sys/folder").mkdir()
    live = Live(tree.machine(), "x:1")
    assert live.number("busy", "/sys/busy") is None
    assert live.unknown["busy"] == "/sys/busy holds no number"
    assert live.number("power_w", "/sys/absent") is None
    assert live.unknown["power_w"] == "/sys/absent: No such file or directory"
    assert live.number("other", "/sys/folder") is None
    assert live.unknown["other"].startswith("/sys/folder: ")
    assert live.first("power_w", "/sys/absent", "/sys/good", scale=0.5) == 21
    assert "power_w" not in live.unknown
    assert live.first("power_w", "/sys/absent", "/sys/good") == live.number("x", "/sys/good") == 42
    assert live.first("power_w", "/sys/absent", "/sys/busy") is None
    assert live.unknown["power_w"] == "/sys/absent: No such file or directory"


def test_a_figure_is_known_or_has_the_first_reason(tmp_path: Path) -> None:
    live = Live(Tree(tmp_path).machine(), "x:1")
    for value, reason in ((None, "first"), (None, "second"), (None, None)):
        live.put("busy", value, reason)
    assert live.sample == {"device": "x:1", "unknown": {"busy": "first"}}
    live.put("busy", 0.0, "third")
    assert live.sample == {"device": "x:1", "unknown": {}, "busy": 0.0}


def test_a_device_that_is_left_alone_says_so() -> None:
    draft = Draft()
    draft.left_alone()
    assert draft.fields["step_facts"] == [
        {"step": "responding", "status": "broken", "evidence": AVOIDED, "code": "driver-hangs"}
    ]
    assert draft.unknown == {"memory.total": AVOIDED}


def test_users_by_passwd_and_never_by_a_server(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    own = os.getuid()
    tree.file("/etc/passwd", f"ada:x:{own}:{own}:Ada:/home:/bin/sh\nbroken\n")
    tree.file("/proc/7/status", f"Name:\tx\nUid:\t{own}\t0\t0\t0\n")
    users = Users(tree.machine())
    assert users.of(7) == "ada"
    assert users.of(8) is None
    tree.file("/etc/passwd", "")
    assert Users(tree.machine()).of(7) == str(own)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def client(
    tree: Tree, pid: int, number: int, fd: int, engines: dict[str, int], **lines: object
) -> None:
    """Open the render node in a process."""
    place = tree.root / f"proc/{pid}/fd"
    place.mkdir(parents=True, exist_ok=True)
    link = place / str(fd)
    if not link.is_symlink():
        link.symlink_to("../../../dev/dri/renderD128")
    text = f"drm-driver: acme\ndrm-pdev: 0000:01:00.0\ndrm-client-id: {number}\n"
    text += "".join(f"drm-engine-{name}: {busy} ns\n" for name, busy in engines.items())
    text += "".join(f"{name.replace('_', '-')}: {value}\n" for name, value in lines.items())
    tree.file(f"/proc/{pid}/fdinfo/{fd}", text)


def test_the_busiest_engine_of_all_clients_counts(tmp_path: Path) -> None:
    tree, clock = Tree(tmp_path), Clock()
    client(tree, 10, 1, 3, {"gfx": 0, "copy": 0})
    client(tree, 11, 2, 3, {"gfx": 5 * 10**9}, drm_resident_vram0="1024 KiB")
    use = DrmUse(tree.machine(), clock)
    use.refresh()
    before = use.of(["renderD128"])
    assert (before.busy, before.reason) == (None, NEEDS_TWO)
    clock.now += 10
    client(tree, 10, 1, 3, {"gfx": 2 * 10**9, "copy": 4 * 10**9})
    client(tree, 11, 2, 3, {"gfx": 6 * 10**9}, drm_resident_vram0="1024 KiB")
    use.refresh()
    now = use.of(["renderD128"])
    assert now.busy == pytest.approx(0.4)  # copy; gfx is 0.2 + 0.1
    assert [(p["pid"], p["memory"]) for p in now.processes] == [(10, 0), (11, 1 << 20)]
    assert use.of(["renderD129"]).processes == []


def test_a_client_in_several_processes_counts_once(tmp_path: Path) -> None:
    tree, clock = Tree(tmp_path), Clock()
    for pid in (10, 11):
        for fd in (3, 4):
            client(tree, pid, 1, fd, {"gfx": 0}, drm_total_vram="4 MiB", drm_resident_vram="1 MiB")
    use = DrmUse(tree.machine(), clock)
    use.refresh()
    here = use.of(["renderD128"])
    assert [(p["pid"], p["memory"]) for p in here.processes] == [(10, 1 << 20), (11, 0)]
    tree.file("/proc/11/status", "Name:\tx\nUid:\t7\t0\t0\t0\n")
    assert [p.get("user") for p in use.of(["renderD128"]).processes] == [None, "7"]


def test_a_value_that_steps_back_keeps_the_larger(tmp_path: Path) -> None:
    tree, clock = Tree(tmp_path), Clock()
    client(tree, 10, 1, 3, {"gfx": 5 * 10**9})
    use = DrmUse(tree.machine(), clock)
    use.refresh()
    for busy, expected in ((4 * 10**9, 0.0), (6 * 10**9, 0.1)):
        clock.now += 10
        client(tree, 10, 1, 3, {"gfx": busy})
        use.refresh()
        assert use.of(["renderD128"]).busy == pytest.approx(expected)


def test_xe_counts_cycles_and_engines_may_be_several(tmp_path: Path) -> None:
    tree, clock = Tree(tmp_path), Clock()
    first = {"drm_cycles_ccs": 0, "drm_total_cycles_ccs": 0, "drm_engine_capacity_ccs": 4}
    client(tree, 10, 1, 3, {}, **first)
    use = DrmUse(tree.machine(), clock)
    use.refresh()
    clock.now += 10
    client(tree, 10, 1, 3, {}, **(first | {"drm_cycles_ccs": 200, "drm_total_cycles_ccs": 100}))
    use.refresh()
    assert use.of(["renderD128"]).busy == pytest.approx(0.5)


def test_a_sweep_comes_seldom(tmp_path: Path) -> None:
    tree, clock = Tree(tmp_path), Clock()
    use = DrmUse(tree.machine(), clock)
    use.refresh()
    client(tree, 10, 1, 3, {"gfx": 0})
    clock.now += 4.875
    use.refresh()
    assert use.of(["renderD128"]).processes == []
    clock.now += 0.125
    use.refresh()
    assert len(use.of(["renderD128"]).processes) == 1


def test_a_long_sweep_comes_later(tmp_path: Path) -> None:
    """Half a percent of a core: after one of 0.125 s the next comes 25 s later."""
    times = iter([100.0, 100.125, 124.5, 125.0, 125.0])
    tree = Tree(tmp_path)
    use = DrmUse(tree.machine(), lambda: next(times))
    use.refresh()
    client(tree, 10, 1, 3, {"gfx": 0})
    use.refresh()
    assert use.of(["renderD128"]).processes == []
    use.refresh()
    assert len(use.of(["renderD128"]).processes) == 1


def test_a_device_without_clients_is_idle(tmp_path: Path) -> None:
    tree, clock = Tree(tmp_path), Clock()
    use = DrmUse(tree.machine(), clock)
    assert (use.of(["card0"]).busy, use.of(["card0"]).reason) == (None, NEEDS_TWO)
    for _ in range(2):
        use.refresh()
        clock.now += 10
    assert (use.of(["card0"]).busy, use.of(["card0"]).reason) == (0.0, None)


def test_cycles_that_stand_still_keep_no_engine_busy(tmp_path: Path) -> None:
    tree, clock = Tree(tmp_path), Clock()
    client(tree, 10, 1, 3, {}, drm_cycles_ccs=50, drm_total_cycles_ccs=100)
    use = DrmUse(tree.machine(), clock)
    for _ in range(2):
        use.refresh()
        clock.now += 10
    assert use.of(["renderD128"]).busy == 0


def test_no_engine_is_busier_than_all_the_time(tmp_path: Path) -> None:
    tree, clock = Tree(tmp_path), Clock()
    use = DrmUse(tree.machine(), clock)
    use.refresh()
    clock.now += 10
    # One that began since: what it counts of the time before is not of this one.
    client(tree, 10, 1, 3, {"gfx": 90 * 10**9})
    client(tree, 11, 2, 3, {"gfx": 90 * 10**9})
    use.refresh()
    assert use.of(["renderD128"]).busy == 1.0


def test_of_a_client_that_began_since_all_counts(tmp_path: Path) -> None:
    tree, clock = Tree(tmp_path), Clock()
    use = DrmUse(tree.machine(), clock)
    use.refresh()
    clock.now += 10
    client(tree, 10, 1, 3, {}, drm_cycles_ccs=1, drm_total_cycles_ccs=4)
    use.refresh()
    assert use.of(["renderD128"]).busy == 0.25


def test_a_driver_that_counts_no_engine(tmp_path: Path) -> None:
    tree, clock = Tree(tmp_path), Clock()
    client(tree, 10, 1, 3, {})
    use = DrmUse(tree.machine(), clock)
    for _ in range(2):
        use.refresh()
        clock.now += 10
    here = use.of(["renderD128"])
    assert (here.busy, here.reason) == (None, "the driver's fdinfo files count no engine")


def test_others_processes_are_counted_and_not_denied(tmp_path: Path) -> None:
    tree, clock = Tree(tmp_path), Clock()
    client(tree, 10, 1, 3, {"gfx": 0})
    tree.file("/proc/11/fd", "not a folder\n")  # as unreadable for root
    use = DrmUse(tree.machine(), clock)
    use.refresh()
    clock.now += 10
    use.refresh()
    here = use.of(["renderD128"])
    assert here.busy is None
    assert here.others == "1 of 2 processes are readable by this user"
    assert [process["pid"] for process in here.processes] == [10]
