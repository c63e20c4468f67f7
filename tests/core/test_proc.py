"""What /proc shows of processes: who is whose parent, and who has ended."""

from __future__ import annotations

import os
import sys

import pytest

from probe_core import proc

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_a_process_that_has_ended_has_no_parent_any_more() -> None:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    os.close(reading)
    own = os.getpid()
    assert proc.parents()[pid] == own
    assert pid in proc.descendants([own])
    os.close(writing)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # it is there still
    assert pid not in proc.parents()
    status = proc.status(pid)
    assert status is not None
    assert (status.parent, status.ended) == (own, True)
    os.waitpid(pid, 0)
    assert proc.status(pid) is None


@pytest.mark.parametrize(
    ("roots", "found"),
    [([1], {2, 3, 4}), ([2], {4}), ([4], set()), ([3, 2], {4}), ([2, 1], {3, 4}), ([], set())],
)
def test_all_that_descends_from_some(roots: list[int], found: set[int]) -> None:
    assert proc.descendants(roots, {2: 1, 3: 1, 4: 2, 9: 8}) == found
