"""Whatever the files of a machine with Intel's devices hold, the prober answers; see tests/fuzz."""

from __future__ import annotations

from typing import Any

import pytest
from foreign import CHANCES, Chance, devices_in, files_of, write_files
from hypothesis import given

from probe_core.api import Machine, Request
from probe_core.probers import bus
from probe_intel.prober import probe_devices

BAR = "0x0000004000000000 0x00000043ffffffff 0x000000000014220c"


def build(tree: Any) -> dict[str, bytes]:
    """A card under xe, an integrated GPU under i915, an NPU and a Gaudi."""
    card = tree.function("0000:03:00.0", "0xe20b", "xe", under=tree.behind_switch(),
                         resource=f"{BAR}\n{BAR}\n{BAR}")  # fmt: skip
    for name in ("tile0/gt0/freq0/rp0_freq", "tile0/memory/freq0/max_freq"):
        tree.file(f"{card}/{name}", 2850)
    tree.file(f"{card}/tile0/physical_vram_size_bytes", 1 << 34)
    tree.file("/sys/fs/cgroup/dmem.capacity", "drm/0000:03:00.0/vram0 12674138112")
    shared = tree.function("0000:00:02.0", "0xa7a0", "i915")
    tree.file(f"{shared}/drm/card0/gt_RP0_freq_mhz", 1450)
    tree.file(f"{shared}/drm/card0/lmem_total_bytes", 0)
    npu = tree.function("0000:00:0b.0", "0x7d1d", "intel_vpu", pci_class="0x120000")
    tree.file(f"{npu}/npu_max_frequency_mhz", 1400)
    tree.file(f"{npu}/accel/accel0/dev", "261:0")
    gaudi = tree.function("0000:33:00.0", "0x1020", "habanalabs", vendor="0x1da3",
                          pci_class="0x120000")  # fmt: skip
    for name, text in (("status", "Operational"), ("clk_max_freq_mhz", 1650)):
        tree.file(f"{gaudi}/{name}", text)
    return files_of(tree.root)


@pytest.mark.heavy
@given(CHANCES)
def test_files(tree: Any, chance: Chance) -> None:
    tree.examples = getattr(tree, "examples", None) or build(tree)
    files = chance.files(tree.examples)
    if chance.random() < 0.1:  # where a kernel writes an address
        files["sys/bus/pci/devices/odd/vendor"] = b"0x8086\n"
        files["sys/bus/pci/devices/odd/device"] = b"0x4680\n"
        files["sys/bus/pci/devices/odd/class"] = b"0x030000\n"
        files["sys/bus/pci/drivers/i915/odd"] = b""
    machine = Machine(str(write_files(tree.root, files)))
    seen = bus.probe_devices(Request(machine)) if chance.random() < 0.5 else ()
    devices_in(probe_devices(Request(machine, tuple(seen) if isinstance(seen, list) else ())))
