"""The node's model and memory: what firmware and /proc say, within the control groups' limits."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from fake_probers import Probers, gpu
from trees import Tree

from probe_core import Machine
from probe_core.pipeline.node import describe, memory
from probe_core.pipeline.settings import load_settings
from probe_core.probing import document

GIB = 1 << 30
MEMINFO = f"MemTotal: {16 * GIB >> 10} kB\nMemAvailable: {12 * GIB >> 10} kB\n"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_without_control_groups(tree: Tree) -> None:
    tree.file("/proc/meminfo", MEMINFO)
    assert memory(tree.machine()) == {"total": 16 * GIB, "available": 12 * GIB, "limit": None}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "MemTotal",
        "MemTotal:",
        "MemTotal: many kB",
        "MemTotal: -5 kB",
        "\0\xff",
        f"MemTotal: {'9' * 5000} kB",
        "nonsense\n" * 9,
    ],
)
def test_unreadable_meminfo_is_unknown_not_zero(text: str, tree: Tree) -> None:
    tree.file("/proc/meminfo", text)
    assert memory(tree.machine()) == {"total": None, "available": None, "limit": None}


def test_smallest_limit_on_the_way_up_holds(tree: Tree) -> None:
    tree.file("/proc/meminfo", MEMINFO)
    tree.file("/proc/self/cgroup", "0::/a/b\n")
    for folder, limit, used in (("", "max", 9), ("/a", str(4 * GIB), 3), ("/a/b", str(8 * GIB), 1)):
        tree.file(f"/sys/fs/cgroup{folder}/memory.max", limit)
        tree.file(f"/sys/fs/cgroup{folder}/memory.current", str(used * GIB))
    assert memory(tree.machine()) == {
        "total": 16 * GIB,
        "available": GIB,
        "limit": 4 * GIB,
        "limited_by": "/sys/fs/cgroup/a/memory.max",
    }


def test_limit_above_the_machines_memory_is_none(tree: Tree) -> None:
    tree.file("/proc/meminfo", MEMINFO)
    tree.file("/proc/self/cgroup", "0::/\n")
    tree.file("/sys/fs/cgroup/memory.max", str(16 * GIB))
    tree.file("/sys/fs/cgroup/memory.current", str(GIB))
    assert memory(tree.machine())["limit"] is None


def test_limit_counts_where_its_use_cannot_be_read(tree: Tree) -> None:
    tree.file("/proc/meminfo", MEMINFO)
    tree.file("/proc/self/cgroup", "0::/\n")
    tree.file("/sys/fs/cgroup/memory.max", str(2 * GIB))
    assert memory(tree.machine()) == {
        "total": 16 * GIB,
        "available": 2 * GIB,
        "limit": 2 * GIB,
        "limited_by": "/sys/fs/cgroup/memory.max",
    }


def test_least_room_holds_even_under_the_larger_limit(tree: Tree) -> None:
    tree.file("/proc/meminfo", MEMINFO)
    tree.file("/proc/self/cgroup", "0::/a/b\n")
    for folder, limit, used in (("/a", 8, 7), ("/a/b", 4, 1)):
        tree.file(f"/sys/fs/cgroup{folder}/memory.max", str(limit * GIB))
        tree.file(f"/sys/fs/cgroup{folder}/memory.current", str(used * GIB))
    assert memory(tree.machine()) == {
        "total": 16 * GIB,
        "available": GIB,
        "limit": 4 * GIB,
        "limited_by": "/sys/fs/cgroup/a/b/memory.max",
    }


def test_page_cache_that_can_be_given_back_is_not_in_use(tree: Tree) -> None:
    tree.file("/proc/meminfo", MEMINFO)
    tree.file("/proc/self/cgroup", "0::/\n3:memory:/\n")
    tree.file("/sys/fs/cgroup/memory.max", str(8 * GIB))
    tree.file("/sys/fs/cgroup/memory.current", str(8 * GIB))
    tree.file("/sys/fs/cgroup/memory.stat", f"anon 1\ninactive_file {5 * GIB}\nfile x\n")
    v1 = "/sys/fs/cgroup/memory"
    tree.file(f"{v1}/memory.limit_in_bytes", str(9 * GIB))
    tree.file(f"{v1}/memory.usage_in_bytes", str(8 * GIB))
    tree.file(f"{v1}/memory.stat", f"inactive_file 7\ntotal_inactive_file {6 * GIB}\n")
    assert memory(tree.machine()) == {
        "total": 16 * GIB,
        "available": 5 * GIB,
        "limit": 8 * GIB,
        "limited_by": "/sys/fs/cgroup/memory.max",
    }


def test_use_above_the_limit_leaves_nothing(tree: Tree) -> None:
    tree.file("/proc/meminfo", MEMINFO)
    tree.file("/proc/self/cgroup", "0::/\n")
    tree.file("/sys/fs/cgroup/memory.max", str(2 * GIB))
    tree.file("/sys/fs/cgroup/memory.current", str(3 * GIB))
    assert memory(tree.machine())["available"] == 0


@pytest.mark.parametrize("limit", ["max", "9223372036854771712", "-1", "", "lots"])
def test_no_limit_in_all_its_spellings(limit: str, tree: Tree) -> None:
    tree.file("/proc/meminfo", MEMINFO)
    tree.file("/proc/self/cgroup", "4:memory:/x\n0::/\n")
    tree.file("/sys/fs/cgroup/memory.max", limit)
    tree.file("/sys/fs/cgroup/memory/memory.limit_in_bytes", limit)
    assert memory(tree.machine())["limit"] is None


def test_path_in_the_cgroup_file_cannot_lead_out(tree: Tree) -> None:
    tree.file("/proc/meminfo", MEMINFO)
    tree.file("/proc/self/cgroup", "0::/../../../../etc\n")
    tree.file("/sys/fs/cgroup/memory.max", str(GIB))
    assert memory(tree.machine())["limit"] == GIB


def test_path_that_no_system_call_takes_is_passed_over(tree: Tree) -> None:
    tree.file("/proc/self/cgroup", f"0::/a\0b\n0::/{'a' * 5000}\n")
    assert memory(tree.machine())["limit"] is None


def test_numa_totals_are_not_used(tree: Tree) -> None:
    tree.file("/proc/meminfo", MEMINFO)
    tree.file("/sys/devices/system/node/node0/meminfo", "Node 0 MemTotal: 99999999 kB\n")
    assert memory(tree.machine())["total"] == 16 * GIB


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("PowerEdge R750\n", "PowerEdge R750"),
        ("To Be Filled By O.E.M.\n", None),
        ("System Product Name\n", None),
        ("Default string", None),
        ("\n", None),
    ],
)
def test_model_of_firmware(text: str, model: str | None, tree: Tree) -> None:
    tree.file("/sys/class/dmi/id/product_name", text)
    assert describe(tree.machine())["model"] == model


def test_model_with_control_characters_is_safe(tree: Tree) -> None:
    tree.file("/sys/class/dmi/id/product_name", b"Evil\x1b[2J\xff\n")
    model = describe(tree.machine())["model"]
    assert model is not None
    assert model.isprintable()
    assert model.startswith("Evil")


def test_kernel_of_a_recorded_machine_is_its_own(tree: Tree) -> None:
    assert describe(tree.machine())["kernel"] is None
    tree.file("/proc/sys/kernel/osrelease", "6.12.9\n")
    assert describe(tree.machine())["kernel"] == "6.12.9"


def test_memory_that_children_took_is_back_when_they_have_ended(
    tree: Tree, probers: Probers
) -> None:
    tree.file("/proc/meminfo", MEMINFO)
    probers.reports("near", gpu(1))
    config, _ = load_settings({"only": ["near"]}, {})

    def end_children() -> None:
        tree.file("/proc/meminfo", MEMINFO.replace(str(12 * GIB >> 10), str(13 * GIB >> 10)))

    report = document(
        config, (), machine=tree.machine(), probers=probers.targets, meanwhile=end_children
    )
    assert [o["prober"] for o in report["outcomes"] if o["status"] == "ok"] == ["near"]
    memory = {"total": 16 * GIB, "available": 13 * GIB, "limit": None}
    node = describe(tree.machine())
    assert list(report["node"].items()) == list({**node, "memory": memory}.items())
    assert node["memory"] == {"total": None, "available": None, "limit": None}


def test_this_machine_has_memory_and_a_kernel() -> None:
    assert describe(Machine())["kernel"]
    found = memory(Machine())
    assert found["total"] is not None
    assert found["available"] is not None
    assert found["total"] > 64 << 20
    assert 0 < found["available"] <= found["total"]


def test_the_host_name_is_told_where_it_is_asked_for(tree: Tree) -> None:
    assert describe(tree.machine(), hostname=True)["host"] is None
    tree.file("/proc/sys/kernel/hostname", "desk\n")
    assert describe(tree.machine(), hostname=True)["host"] == "desk"
    assert describe(tree.machine())["host"] is None
    assert describe(Machine(environ={}), hostname=True)["host"] == socket.gethostname()


def test_recorded_machine_of_another_system_has_no_live_figures(tmp_path: Path) -> None:
    node = describe(Machine(str(tmp_path), os="darwin", arch="arm64"))
    assert node["memory"] == {"total": None, "available": None, "limit": None}
    assert (node["os"], node["kernel"], node["model"]) == ("darwin", None, None)


NODES = "/sys/devices/system/node"


def numa(tree: Tree, sizes: dict[int, int], free: int = 1) -> None:
    """Write NUMA nodes of so many GiB, of which `free` are."""
    tree.file(f"{NODES}/online", ",".join(map(str, sizes)))
    for node, size in sizes.items():
        text = f"Node {node} MemTotal: {size << 20} kB\nNode {node} MemFree: {free << 20} kB\n"
        tree.file(f"{NODES}/node{node}/meminfo", text)


def test_memory_of_gpus_is_not_the_node_s(tree: Tree) -> None:
    tree.file("/proc/meminfo", MEMINFO)
    numa(tree, {0: 8, 250: 4, 255: 4})
    for address, node in (("0004:05:00.0", 255), ("0004:06:00.0", 250)):
        path = f"/proc/driver/nvidia/gpus/{address}/numa_status"
        tree.file(path, f"Node:      {node}\nStatus:    online\n")
    found = memory(tree.machine())
    assert (found["total"], found["devices"]) == (8 * GIB, 8 * GIB)
    # MemAvailable counts what is free of the GPUs' memory, too.
    assert found["available"] == memory_available(tree) - 2 * GIB


def memory_available(tree: Tree) -> int:
    lines = tree.machine().read("/proc/meminfo").splitlines()  # type: ignore[union-attr]
    (line,) = [line for line in lines if line.startswith("MemAvailable")]
    return int(line.split()[1]) * 1024


@pytest.mark.parametrize("text", ["", "Node: x", "Node: 99", "Status: offline", "Node: -1"])
def test_numa_status_that_tells_nothing(text: str, tree: Tree) -> None:
    tree.file("/proc/meminfo", MEMINFO)
    numa(tree, {0: 8, 1: 8})
    tree.file("/proc/driver/nvidia/gpus/0000:01:00.0/numa_status", text)
    assert memory(tree.machine())["total"] == 16 * GIB


@pytest.mark.parametrize(
    ("mems", "limit", "available"),
    [("0", 8, 1), ("0-1", None, None), ("", None, None), ("7", None, None)],
)
def test_memory_nodes_of_a_cpuset(
    mems: str, limit: int | None, available: int | None, tree: Tree
) -> None:
    tree.file("/proc/meminfo", MEMINFO)
    tree.file("/proc/self/cgroup", "0::/\n")
    numa(tree, {0: 8, 1: 8})
    path = "/sys/fs/cgroup/cpuset.mems.effective"
    tree.file(path, mems)
    found = memory(tree.machine())
    assert found["limit"] == (limit * GIB if limit else None)
    assert found.get("limited_by") == (path if limit else None)
    if available:
        assert found["available"] == available * GIB


def test_the_smaller_of_two_limits_holds(tree: Tree) -> None:
    tree.file("/proc/meminfo", MEMINFO)
    tree.file("/proc/self/cgroup", "0::/\n")
    numa(tree, {0: 8, 1: 8})
    tree.file("/sys/fs/cgroup/cpuset.mems.effective", "0")
    tree.file("/sys/fs/cgroup/memory.max", str(4 * GIB))
    found = memory(tree.machine())
    assert (found["limit"], found["limited_by"]) == (4 * GIB, "/sys/fs/cgroup/memory.max")


@pytest.mark.parametrize(
    ("group", "file", "fix"),
    [
        ("/job", "memory.max", "docker run --memory"),
        ("/job", "cpuset.mems.effective", "--cpuset-mems"),
        ("/system.slice/slurmstepd.scope/job_5/step_0/user", "memory.max", "`sbatch --mem`"),
        ("/kubepods.slice/kubepods-pod1.slice", "memory.max", "`resources.limits.memory`"),
    ],
)
def test_the_finding_names_the_limit_s_file(group: str, file: str, fix: str, tree: Tree) -> None:
    from reports import report_of

    tree.file("/proc/meminfo", MEMINFO)
    tree.file("/proc/self/cgroup", f"0::{group}\n")
    numa(tree, {0: 8, 1: 8})
    place = f"/sys/fs/cgroup{group}/{file}"
    tree.file(place, "0" if "mems" in file else str(4 * GIB))
    findings = report_of(tree.machine())["findings"]
    (limited,) = [found for found in findings if found["code"] == "memory-limited"]
    assert limited["why"] == f"{place} limits it; the machine has more"
    assert fix in limited["fix"]
    assert limited["evidence"] == place


@pytest.mark.parametrize(
    ("sign", "environ", "group", "memory_fix", "cpu_fix"),
    [
        # Real engines give a container a namespace of control groups, in which its own is "/".
        ("/.dockerenv", {}, "", "`docker run --memory`", "`docker run --cpus --cpuset-cpus`"),
        (
            "/run/.containerenv",
            {},
            "",
            "`podman run --memory`",
            "`podman run --cpus --cpuset-cpus`",
        ),
        (
            "/etc/hostname",
            {"KUBERNETES_SERVICE_HOST": "10.0.0.1"},
            "",
            "`resources.limits.memory` of the container",
            "`resources.limits.cpu` of the container",
        ),
        # A job in a container is its job's, and a service in an image that was unpacked systemd's.
        (
            "/.dockerenv",
            {},
            "/system.slice/slurmstepd.scope/job_5",
            "`sbatch --mem`, or `--mem-per-gpu`",
            "`sbatch --cpus-per-task`, or `--cpus-per-gpu`",
        ),
        (
            "/.dockerenv",
            {},
            "/system.slice/inference.service",
            "`MemoryMax=` of the systemd unit",
            "`CPUQuota=` and `AllowedCPUs=` of the systemd unit",
        ),
    ],
)
def test_a_limit_is_raised_where_it_was_set(
    sign: str, environ: dict[str, str], group: str, memory_fix: str, cpu_fix: str, tree: Tree
) -> None:
    from reports import report_of

    tree.file(sign, "\n")
    tree.file("/proc/meminfo", MEMINFO)
    tree.file("/proc/cpuinfo", "processor : 0\nmodel name : AMD EPYC\n")
    tree.file("/proc/self/cgroup", f"0::{group or '/'}\n")
    tree.file(f"/sys/fs/cgroup{group}/memory.max", str(4 * GIB))
    tree.file("/sys/devices/system/cpu/online", "0-1\n")
    for cpu in range(2):
        tree.file(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list", cpu)
    tree.file(f"/sys/fs/cgroup{group}/cpu.max", "50000 100000")
    findings = report_of(Machine(str(tree.root), environ, arch="x86_64"))["findings"]
    fixes = {found["code"]: found["fix"] for found in findings}
    assert fixes["memory-limited"] == f"raise the limit: {memory_fix}"
    assert fixes["processors-limited"] == f"raise the limit: {cpu_fix}"
