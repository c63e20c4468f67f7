"""The files of a machine, live or recorded: whatever they hold, the node is described."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from foreign import CHANCES, Chance, encoded, write_files
from hypothesis import given

from probe_core.api import Machine, NotApplicable, Request
from probe_core.machine import MAX_CPUS, cpu_list
from probe_core.pipeline import node
from probe_core.pipeline.validate import check_sighting
from probe_core.probers import builtin_probers, cpu_files

GPU = "sys/bus/pci/devices/0000:01:00.0"
CPU = "sys/devices/system/cpu"
TREE = "sys/firmware/devicetree/base"
X86 = (
    b"processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 158\n"
    b"model name\t: Intel(R) Core(TM) i7\nstepping\t: 10\ncpu MHz\t\t: 3700.0\n"
    b"flags\t\t: sse2 avx2 fma\n\n"
)
ARM = (
    b"processor\t: 0\nFeatures\t: asimd bf16\nCPU implementer\t: 0x41\nCPU part\t: 0xd05\n\n"
    b"processor\t: 4\nCPU implementer\t: 0x41\nCPU part\t: 0xd0b\n\n"
)
FILES = {
    "proc/meminfo": b"MemTotal: 16000000 kB\nMemFree: 1 kB\nMemAvailable: 12000000 kB\n",
    "proc/cpuinfo": X86,
    "proc/self/cgroup": b"0::/user.slice/a.scope\n5:memory,cpu:/docker/b\n",
    "proc/sys/kernel/osrelease": b"6.12.9\n",
    "sys/fs/cgroup/user.slice/memory.max": b"8589934592\n",
    "sys/fs/cgroup/user.slice/memory.current": b"4096\n",
    "sys/fs/cgroup/user.slice/memory.stat": b"anon 10\ninactive_file 1024\n",
    "sys/fs/cgroup/memory/docker/b/memory.limit_in_bytes": b"9223372036854771712\n",
    f"{GPU}/vendor": b"0x10de\n",
    f"{GPU}/device": b"0x2684\n",
    f"{GPU}/class": b"0x030000\n",
    f"{GPU}/revision": b"0xa1\n",
    f"{GPU}/subsystem_vendor": b"0x1043\n",
    f"{GPU}/subsystem_device": b"0x889a\n",
    f"{GPU}/numa_node": b"-1\n",
    f"{GPU}/current_link_speed": b"16.0 GT/s PCIe\n",
    f"{GPU}/current_link_width": b"16\n",
    f"{GPU}/max_link_width": b"16\n",
    f"{GPU}/power/runtime_status": b"active\n",
    f"{CPU}/online": b"0-3,8\n",
    f"{CPU}/cpu0/cpufreq/cpuinfo_max_freq": b"4700000\n",
    f"{CPU}/cpu0/topology/package_cpus_list": b"0-3\n",
    f"{CPU}/cpu0/topology/core_cpus_list": b"0-1\n",
    f"{CPU}/cpu0/node0/cpulist": b"0-3\n",
    "sys/devices/cpu_core/cpus": b"0-1\n",
    f"{TREE}/model": b"Board\0",
    f"{TREE}/compatible": b"acme,board\0rockchip,rk3588\0",
    "sys/bus/platform/devices/fb000000.gpu/of_node/compatible": b"arm,mali-bifrost\0",
    "sys/class/drm/card0/dev": b"226:0\n",
    "sys/class/dmi/id/product_name": b"Board\n",
}


@pytest.mark.heavy
@given(CHANCES)
def test_the_files_of_a_machine(tmp_path: Path, chance: Chance) -> None:
    arch = chance.choice(["x86_64", "aarch64", "riscv64"])
    machine = Machine(str(write_files(tmp_path / "root", chance.files(FILES))), arch=arch)
    json.dumps(node.describe(machine), allow_nan=False)
    for prober in builtin_probers():
        assert prober.builtin is not None
        answer = prober.builtin(Request(machine))
        for sighting in [] if isinstance(answer, NotApplicable) else answer:
            checked, _ = check_sighting(sighting)
            json.dumps(checked, allow_nan=False)


@pytest.mark.heavy
@given(CHANCES)
def test_names_of_folders(tmp_path: Path, chance: Chance) -> None:
    """Every name that a file system allows may stand where a kernel writes an address."""
    names = [chance.words(["0000:01:00.0", "1", ":", "."], "")[:80] for _ in range(4)]
    names = [name.replace("/", "_").replace("\0", "_").strip(".") for name in names]
    files = {f"sys/bus/pci/devices/{name or 'x'}/class": b"0x030000\n" for name in set(names)}
    files |= {f"{path.rpartition('/')[0]}/vendor": b"0x10de\n" for path in files}
    root = write_files(tmp_path / "root", {k: v for k, v in files.items() if _writable(k)})
    for prober in builtin_probers():
        assert prober.builtin is not None
        prober.builtin(Request(Machine(str(root))))


def _writable(path: str) -> bool:
    try:
        return len(path.encode()) < 400
    except UnicodeEncodeError:
        return False


@pytest.mark.heavy
@given(CHANCES)
def test_processors(chance: Chance) -> None:
    text = chance.mutate(X86, ARM, X86 * 3).decode("utf-8", "replace")
    json.dumps(cpu_files.parse(text), allow_nan=False)


@pytest.mark.heavy
@given(CHANCES)
def test_lists_of_processors(chance: Chance) -> None:
    text = encoded(chance.words(["0-3", "8", "0-65535", "3-1", "-"], ",")).decode(errors="replace")
    assert all(0 <= cpu < MAX_CPUS for cpu in cpu_list(text))
