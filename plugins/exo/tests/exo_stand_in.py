"""What the patch finds in exo, under exo's public names: its types in our own few words.

No exo is installed here. The patch's own text is put into these classes and run, see
`test_exo_patch`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

PATCH = (Path(__file__).parents[1] / "docs" / "exo-0.3.70.patch").read_text("utf-8")


class FrozenModel(BaseModel):
    """exo's models take no other keys, coerce nothing and never change."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Memory(FrozenModel):
    in_bytes: int = 0

    @classmethod
    def from_bytes(cls, size: int) -> Self:
        return cls(in_bytes=size)


MEMORY_USAGE = """
class MemoryUsage(FrozenModel):
    ram_total: Memory
    ram_available: Memory
    swap_total: Memory
    swap_available: Memory
"""


def added(path: str) -> list[str]:
    """Return what the patch adds to a file, a text for each run of lines."""
    text = PATCH.partition(f"\n+++ b/{path}\n")[2].partition("\ndiff --git ")[0]
    runs = re.findall(r"(?:^\+.*\n)+", text + "\n", re.MULTILINE)
    return [re.sub(r"^\+", "", run, flags=re.MULTILINE) for run in runs]


def patched(node_memory: Any) -> dict[str, Any]:
    """Return exo's names after the patch: `MemoryUsage`, `prefer_accelerated_cycles`, `_peaks`."""
    names: dict[str, Any] = {
        "FrozenModel": FrozenModel,
        "Memory": Memory,
        "Sequence": Sequence,
        "Mapping": Mapping,
        "Self": Self,
        "NodeId": str,
        "Cycle": list,
        "SystemPerformanceProfile": Any,
        "StaticNodeInformation": Any,
        "node_memory": node_memory,
        "__name__": "exo.shared.types.profiling",
    }
    source = ""
    profiling = added("src/exo/shared/types/profiling.py")
    accelerator = next(run for run in profiling if "class AcceleratorMemory" in run)
    members = [run for run in profiling if "usable_total: Memory" in run or "def from_node" in run]
    source += accelerator + MEMORY_USAGE + "".join(members)
    for path, name in (
        ("src/exo/master/placement_utils.py", "def prefer_accelerated_cycles"),
        ("src/exo/shared/apply.py", "def _peaks"),
    ):
        source += "\n" + next(run for run in added(path) if name in run)
    # Names of a module of exo's own, which the annotations are resolved in.
    exec(compile(source, "exo-0.3.70.patch", "exec", dont_inherit=True), names)
    return names
