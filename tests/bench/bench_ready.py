"""What does readiness cost: eight healthy GPUs judged, and the first judgement's imports?"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from statistics import median

from measure import Figure
from place import Place

# The tree is below a folder, whose links a recorded machine follows one by one. The live machine
# does not, so the paths are joined here as simply as there.
EIGHT = """
import json, sys
from pathlib import Path
from time import perf_counter
from probe_core.machine import Machine
from probe_core.testing import Tree
from probe_core.setting_values import load_config
from probe_core.pipeline.merge import merge
from probe_core.pipeline.probers import Builtins
from probe_core.visibility import annotate, see
tree, rounds, nodes = Tree(Path(sys.argv[1])), int(sys.argv[2]), {}
version = "580.95.05"
text = f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {version}\\n"
tree.file("/proc/driver/nvidia/version", text)
tree.file("/proc/modules", "nvidia 1 0\\nnvidia_uvm 1 0\\n")
for name in ("libcuda.so", "libnvidia-ml.so"):
    tree.file(f"/usr/lib64/{name}.{version}", b"\\x7fELF\\x02")
    tree.link(f"/usr/lib64/{name}.1", f"/usr/lib64/{name}.{version}")
for number in range(8):
    address = f"0000:0{number + 1}:00.0"
    tree.pci(address, "10de:2330", driver="nvidia", link=(16, 32.0), max_link=(16, 32.0),
             aer_dev_fatal="TOTAL_ERR_FATAL 0")
    tree.file(f"/proc/driver/nvidia/gpus/{address}/information", f"Device Minor: {number}\\n")
    for path in (f"/dev/nvidia{number}", "/dev/nvidiactl", "/dev/nvidia-uvm"):
        nodes[path] = "ok"
machine = Machine(str(tree.root), access=nodes)
builtins = Builtins(machine, load_config({"only": "none"}, {})[0])
Machine.path = lambda self, path: self.root + path
taken = []
for _ in range(rounds):
    devices, _ = merge(builtins.collect().observations)
    start = perf_counter()
    from probe_core.readiness import Scene, conclude, judge
    judge(devices, Scene(machine))
    judged = perf_counter()
    annotate(devices, see(devices, {}))
    seen = perf_counter()
    conclude(devices)
    taken.append(judged - start + perf_counter() - seen)
states = {device["readiness"]["state"] for device in devices if device["kind"] == "gpu"}
assert states == {"ready"}, states
print(json.dumps(taken))
"""

TARGET_MS = 1.0
"""For eight healthy GPUs, of a whole probe's ten and more."""


def run(place: Place) -> Iterator[Figure]:
    """Measure the judgement of eight GPUs, the first time and later."""
    done = subprocess.run(
        [place.python, "-c", EIGHT, str(place.folder / "eight"), str(place.rounds(50))],
        env=dict(place.environ), capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise RuntimeError(done.stderr[-2000:])
    first, *later = (seconds * 1000 for seconds in json.loads(done.stdout))
    note = f"first time {first:.2f} ms, with its imports"
    yield Figure("readiness, 8 healthy GPUs", median(later), "ms", TARGET_MS, note)
