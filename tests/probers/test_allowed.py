"""What this process may use: affinity, cpusets wherever they are mounted, and CPU time."""

from __future__ import annotations

import os
from typing import Any

import pytest
from trees import Tree

from probe_core import Machine
from probe_core.probers import cpu
from probe_core.probers.cpu import AFFINITY, limits, mark, share
from probe_core.probers.cpu_types import Cluster
from probe_core.resolve.cores import processors_limited

ONLINE = list(range(8))
V2 = "/sys/fs/cgroup"


def found(tree: Tree) -> tuple[list[int] | None, str, float | None, str]:
    result = limits(tree.machine(), ONLINE)
    cpus = None if result.cpus is None else sorted(result.cpus)
    return cpus, result.cpus_by, result.quota, result.quota_by


def test_nothing_limits(tree: Tree) -> None:
    assert found(tree) == (None, "", None, "")


def test_the_nearest_group_with_a_cpuset_counts(tree: Tree) -> None:
    tree.file("/proc/self/cgroup", "0::/a/b\n")
    tree.file(f"{V2}/a/cpuset.cpus.effective", "0-3\n")
    tree.file(f"{V2}/cpuset.cpus.effective", "0-7\n")
    assert found(tree) == ([0, 1, 2, 3], f"{V2}/a/cpuset.cpus.effective", None, "")


def test_a_cpuset_of_all_cpus_limits_nothing(tree: Tree) -> None:
    tree.file("/proc/self/cgroup", "0::/\n")
    tree.file(f"{V2}/cpuset.cpus.effective", "0-63\n")
    assert found(tree) == (None, "", None, "")


def test_version_1(tree: Tree) -> None:
    tree.file("/proc/self/cgroup", "5:cpuset:/job\n4:cpu,cpuacct:/job\n0::/job\n")
    tree.file(f"{V2}/cpuset/job/cpuset.cpus", "4-5\n")
    tree.file(f"{V2}/cpu/job/cpu.cfs_quota_us", "150000\n")
    tree.file(f"{V2}/cpu/job/cpu.cfs_period_us", "100000\n")
    tree.file(f"{V2}/cpu/cpu.cfs_quota_us", "-1\n")
    expected = f"{V2}/cpuset/job/cpuset.cpus", 1.5, f"{V2}/cpu/job/cpu.cfs_quota_us"
    assert found(tree) == ([4, 5], *expected)


@pytest.mark.parametrize(
    ("mount", "file"),
    [
        ("none /cgroup/unified cgroup2 rw 0 0", "/cgroup/unified/job/cpuset.cpus.effective"),
        ("none /dev/cpuset cpuset rw 0 0", "/dev/cpuset/job/cpus"),
        ("x /dev/cpuset cgroup rw,cpuset,noprefix 0 0", "/dev/cpuset/job/cpus"),
        ("x /cg cgroup rw,relatime,cpuset 0 0", "/cg/job/cpuset.cpus"),
    ],
)
def test_cpusets_that_a_batch_system_mounts_elsewhere(mount: str, file: str, tree: Tree) -> None:
    tree.file("/proc/self/cpuset", "/job\n")
    tree.file("/proc/mounts", f"proc /proc proc rw 0 0\n\nshort\n{mount}\n")
    tree.file(file, "2-3\n")
    assert found(tree) == ([2, 3], file, None, "")


@pytest.mark.parametrize(
    ("text", "quota"),
    [
        ("250000 100000", 2.5),
        ("max 100000", None),
        ("800000 100000", None),  # all eight CPUs
        ("5 0", None),
        ("0 100000", None),
        ("", None),
        ("100000", None),
        ("-1 5", None),
        ("9" * 400 + " 1", None),
    ],
)
def test_quota(text: str, quota: float | None, tree: Tree) -> None:
    tree.file("/proc/self/cgroup", "0::/a\n")
    tree.file(f"{V2}/a/cpu.max", text)
    tree.file(f"{V2}/cpu.max", "700000 100000")
    by = f"{V2}/a/cpu.max" if quota else f"{V2}/cpu.max"
    assert found(tree) == (None, "", quota or 7.0, by)


def test_affinity_is_named_where_no_cpuset_explains_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "_cpuset", lambda machine: (None, ""))
    monkeypatch.setattr(cpu, "cpu_quota", lambda machine: (None, ""))
    own = frozenset(os.sched_getaffinity(0))
    result = limits(Machine(), [*own, 70_000])
    assert (result.cpus, result.cpus_by) == (own, AFFINITY)
    assert limits(Machine(), own).cpus is None


def test_an_affinity_is_no_limit_of_an_engine() -> None:
    processor: Any = {
        "chip": {},
        "units": 16,
        "allowed": {"threads": 1, "cores": 1, "by": [AFFINITY]},
    }
    found = processors_limited([processor], "docker")
    assert found["what"] == "this process may use 1 of 16 cores"
    assert found["fix"] == "start the process without `taskset`, or with more cores"


def test_share_counts_a_core_with_one_allowed_thread(tree: Tree) -> None:
    tree.file("/proc/self/cgroup", "0::/\n")
    tree.file(f"{V2}/cpuset.cpus.effective", "0,1,4\n")
    limited = limits(tree.machine(), ONLINE)
    cores = [[0, 4], [1, 5], [2, 6], [3, 7]]
    by = [f"{V2}/cpuset.cpus.effective"]
    assert share(limited, ONLINE, cores) == {"threads": 3, "cores": 2, "by": by}
    assert share(limited, ONLINE, None) == {"threads": 3, "by": by}
    assert share(limited, [0, 4], [[0, 4]]) is None
    assert share(limited, [2, 6], [[2, 6]]) == {"threads": 0, "cores": 0, "by": by}


def test_each_kind_of_core_has_its_allowed_part(tree: Tree) -> None:
    tree.file("/proc/self/cgroup", "0::/\n")
    tree.file(f"{V2}/cpuset.cpus.effective", "0-1,6\n")
    performance: Cluster = {"kind": "cpu_core", "cores": 2, "members": [[0, 1], [2, 3]]}
    efficiency: Cluster = {"kind": "cpu_atom", "cores": 4, "members": [[4], [5], [6], [7]]}
    other: Cluster = {"cores": 2, "members": [[0], [7]]}
    kinds = [performance, efficiency, other]
    mark(limits(tree.machine(), ONLINE), kinds)
    assert [kind["allowed"] for kind in kinds] == [1, 1, 1]
    tree.file(f"{V2}/cpuset.cpus.effective", "0,2\n")
    mark(limits(tree.machine(), ONLINE), kinds)
    assert [kind["allowed"] for kind in kinds] == [2, 0, 1]


def test_packages_share_the_cpu_time_by_their_cpus(tree: Tree) -> None:
    """Each had the whole: a plan counted nine CPUs where a quota of 4.5 is for both."""
    tree.file("/proc/self/cgroup", "0::/job\n")
    tree.file(f"{V2}/job/cpuset.cpus.effective", "0-3,4-5\n")
    tree.file(f"{V2}/job/cpu.max", "450000 100000\n")
    limited = limits(tree.machine(), ONLINE)
    first, second = share(limited, [0, 1, 2, 3], None), share(limited, [4, 5, 6, 7], None)
    assert first is not None
    assert second is not None
    assert (first["quota"], second["quota"]) == (3.0, 1.5)
    assert (first["threads"], second["threads"]) == (4, 2)
