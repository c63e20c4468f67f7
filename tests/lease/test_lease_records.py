"""What a lease writes about itself is what others read, within the bounds of each field."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from probe_core.leasing import obtain
from probe_core.leasing.acquire import Acquisition
from probe_core.leasing.folder import Folder
from probe_core.leasing.listing import _held_slots
from probe_core.leasing.ranges import CLAIMED, QUEUES, SLOT, UNITS, try_lock
from probe_core.leasing.records import (
    Record,
    command_text,
    marks,
    own_record,
    read_records,
    rewrite,
    sign,
)
from probe_core.proc import pid_namespace, started
from probe_core.selection.request import Request


def written(folder: Path, text: str, name: str = "abc") -> Record | None:
    """Return the record that others read from a file with this text."""
    (folder / "records").mkdir(exist_ok=True)
    (folder / "records" / name).write_text(text)
    with Folder(str(folder)) as box:
        return next(iter(read_records(box)), None)


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = own_record(["python", "a b", ""], share=True, mark="a1", reserve=5)
    record.keeper, record.keeper_started, record.since = 7, 8, 12.5
    record.devices, record.wholes = ["pci:0000:01:00.0", "uuid:MIG-1"], ["uuid:GPU-1"]
    with Folder(str(tmp_path)) as box:
        handle = sign(box, record)
        (read,) = read_records(box)
        os.close(handle)
    fields = ("name", "pid", "started", "pidns", "share", "mark", "reserve", "keeper",
              "keeper_started", "since", "devices", "wholes", "command")  # fmt: skip
    assert [getattr(read, name) for name in fields] == [getattr(record, name) for name in fields]
    assert (read.command, read.reserve, read.share) == ("python a b ''", 5, True)
    assert read.uid == os.geteuid()
    assert (read.pid, read.alive(), read.running()) == (os.getpid(), True, {os.getpid()})


def test_a_record_that_becomes_shorter_has_nothing_left_of_the_longer(tmp_path: Path) -> None:
    record = own_record(["long command"], share=False, mark="a1")
    with Folder(str(tmp_path)) as box:
        handle = sign(box, record)
        record.command = "x"
        rewrite(handle, record)
        (read,) = read_records(box)
        os.close(handle)
    assert (read.command, read.share) == ("x", False)
    assert (tmp_path / "records" / "a1").read_text().endswith("command x\n")


def test_who_runs_is_known_in_the_own_namespace_alone() -> None:
    own, namespace = os.getpid(), pid_namespace()
    cases = [
        (own, started(own), namespace, True, {own}),
        (own, (started(own) or 0) + 1, namespace, False, set()),
        (own, None, namespace, False, set()),
        (None, 5, namespace, None, set()),
        (own, started(own), None, None, set()),
        (own, started(own), (namespace or 0) + 1, None, set()),
    ]
    for pid, began, pidns, alive, running in cases:
        record = Record()
        record.pid, record.started, record.pidns = pid, began, pidns
        assert (record.alive(), record.running()) == (alive, running)
    keeper = Record()
    keeper.keeper, keeper.keeper_started, keeper.pidns = own, started(own), namespace
    assert (keeper.alive(), keeper.running()) == (None, {own})


@pytest.mark.parametrize(
    ("environ", "depths", "expected"),
    [
        ({}, {}, "b"),
        ({"PROBE_LEASE_ID": "a"}, {"x": 1}, "a,b"),
        ({"PROBE_LEASE_ID": "a"}, {}, "b"),
        ({"PROBE_LEASE_ID": ""}, {"x": 1}, "b"),
        ({}, {"x": 1}, "b"),
    ],
)
def test_marks_of_outer_leases_come_first(
    environ: dict[str, str], depths: dict[str, int], expected: str
) -> None:
    assert marks(environ, depths, "b") == expected


def test_a_command_in_one_line() -> None:
    assert command_text(["a", "", "\xe9\n"]) == "a '' \\xe9\\n"
    assert command_text(["a" * 200]) == "a" * 200
    assert command_text(["a" * 201]) == "a" * 197 + "..."
    assert command_text(["abcdef"], 5) == "ab..."


def test_what_another_user_wrote_is_read_within_bounds(tmp_path: Path) -> None:
    lines = f"command \x1b{'c' * 300}\ndevice a\x07\nmark {'m' * 64}\nshare 2\nsince -1\npid x\n"
    read = written(tmp_path, f"{lines}started 1e18\nreserve 9e17\nother 1\n")
    assert read is not None
    assert (read.command, read.devices) == ("?" + "c" * 199, ["a?"])
    assert (read.mark, read.share, read.since) == ("m" * 64, False, None)
    assert (read.pid, read.started, read.reserve) == (None, None, 9 * 10**17)
    read = written(tmp_path, f"mark {'m' * 65}\nshare 1\nsince 0\npid 0\n")
    assert read is not None
    assert (read.mark, read.share, read.since, read.pid) == ("", True, 0, 0)


@pytest.mark.parametrize(
    ("name", "is_read"),
    [("a" * 64, True), ("a" * 65, False), (".hidden", False), ("a-b", False), ("\xe9", False)],
)
def test_names_of_records(name: str, is_read: bool, tmp_path: Path) -> None:
    assert (written(tmp_path, "pid 1\n", name) is not None) is is_read


@pytest.mark.parametrize(("count", "is_read"), [(4096, True), (4097, False)])
def test_so_many_devices_of_a_user_are_read(count: int, is_read: bool, tmp_path: Path) -> None:
    text = "device a\n" * (count - 1) + "whole b\n"
    assert (written(tmp_path, text) is not None) is is_read


def test_so_much_of_a_record_and_so_many_records_of_a_user_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "command x\n" + "other\n" * 10_920 + "pid 12"
    assert len(long) == 65_536
    for text, pid in ((long, 12), (f" {long}", 1)):
        read = written(tmp_path, text)
        assert read is not None
        assert (read.command, read.pid) == ("x" * (text is long), pid)
    # A MiB of all of them.
    for number in range(16):
        (tmp_path / "records" / f"r{number:02}").write_text("x" * 65_536)
    with Folder(str(tmp_path)) as box:
        assert len(read_records(box)) == 16
    for number in range(16):
        (tmp_path / "records" / f"r{number:02}").write_text("x")
    for most, count in ((17, 17), (16, 16)):
        monkeypatch.setattr("probe_core.leasing.records._MOST", most)
        with Folder(str(tmp_path)) as box:
            assert len(read_records(box)) == count


def entry(device: str = "gpu:1", **changes: Any) -> Any:
    known = {"device": device, "pid": 5, "command": "train", "proven": True, "kept_by": []}
    return {**known, "state": "running", "share": False, "reserve": None, **changes}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "by process 5 (train)"),
        ({"proven": False}, "by process 5 (train, as its record says)"),
        ({"pid": None, "command": "", "proven": False}, "by process ? (?)"),
        ({"kept_by": [7, 8], "state": "inherited"},
         "by process 5 (train), which has ended and left running 7, 8"),
        ({"kept_by": [7], "state": "unknown"}, "by process 5 (train), here seen as 7"),
    ],
)  # fmt: skip
def test_who_holds_a_device(changes: dict[str, Any], text: str) -> None:
    assert obtain._holder(entry(**changes)) == text


@pytest.mark.parametrize(
    ("request_", "leases", "total", "fix"),
    [
        (Request(3), [entry()], 4, "--wait to queue"),
        (Request(4), [entry()], 4, "--wait to queue, or ask for 3"),
        (Request(4), [entry(), entry()], 4, "--wait to queue, or ask for 3"),
        (Request(4), [entry(), entry("gpu:2"), entry("gpu:3")], 4, "--wait to queue, or ask for 1"),
        (Request(4), [entry()], 1, "--wait to queue"),
        (Request(), [entry()], 2, "--wait to queue"),
        (Request(4, selector="0-3"), [entry()], 4, "--wait to queue"),
        (Request(1), [entry(share=True)], 1, "--wait to queue, or --share: their owners do"),
        (Request(1, share=True), [entry(share=True)], 1, "--wait to queue"),
        (Request(1, reserve=5), [entry(share=True)], 1, "--wait to queue"),
        (Request(1), [entry(share=True, reserve=5)], 1, "--wait to queue"),
        (Request(1), [entry(share=True), entry()], 1, "--wait to queue"),
        (Request(1), [], 1, "--wait to queue"),
    ],
)
def test_what_would_work_instead(request_: Request, leases: Any, total: int, fix: str) -> None:
    assert obtain._alternatives(request_, leases, total) == fix


def test_slots_that_are_locked_are_found_from_first_to_last(tmp_path: Path) -> None:
    with Folder(str(tmp_path)) as box:
        locker, look = box.locks(), box.locks()
        # The end of one device's memory, two whole slots, and of another one a claim alone.
        for start, length in (
            (3 * SLOT + UNITS - 1, SLOT - UNITS + 1), (4 * SLOT, 2 * SLOT), (9 * SLOT + CLAIMED, 1),
            (20 * SLOT, 1), (0, 1), (QUEUES - SLOT, 1), (QUEUES + SLOT, 1),
        ):  # fmt: skip
            assert try_lock(locker, start, length)
        last = QUEUES // SLOT - 1
        assert sorted(place // SLOT for place in _held_slots(look)) == [0, 3, 4, 5, 20, last]
        # Of who locks more in a row than there are devices, so many are told.
        assert try_lock(locker, 100 * SLOT, 100 * SLOT)
        told = sorted(place // SLOT for place in _held_slots(look))
        assert told == [0, 3, 4, 5, 20, *range(100, 165), last]
        os.close(locker), os.close(look)


def test_a_file_with_a_second_name_is_no_record(tmp_path: Path) -> None:
    assert written(tmp_path, "pid 1\n") is not None
    os.link(tmp_path / "records" / "abc", tmp_path / "records" / "other")
    with Folder(str(tmp_path)) as box:
        assert read_records(box) == []


@pytest.mark.parametrize(
    ("records", "changes"),
    [
        ([(("a",), (), False)], True),  # its owner is dead
        ([(("a",), (), True)], False),
        ([(("a",), (), None)], False),  # not known
        ([((), ("b",), False)], True),  # the whole of it
        ([(("a",), (), True), (("b",), (), False)], True),
        ([(("c",), ("d",), False)], False),  # of another device: the locks say that it is free
    ],
)
def test_a_device_whose_owner_is_dead_may_be_free_in_a_moment(
    records: list[tuple[tuple[str, ...], tuple[str, ...], bool | None]], changes: bool,
    tmp_path: Path,
) -> None:  # fmt: skip
    living: Any = [
        SimpleNamespace(devices=devices, wholes=wholes, alive=lambda alive=alive: alive)
        for devices, wholes, alive in records
    ]
    key: Any = SimpleNamespace(names=frozenset(("a", "b")))
    with (tmp_path / "locks").open("w+b") as locks:
        request: Any = SimpleNamespace(_look=locks.fileno())
        assert Acquisition._changes(request, key, living) == changes
