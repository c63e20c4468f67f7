"""Queries AMD GPUs through pyamdgpuinfo: names from libdrm, memory and clocks from ioctls.

It opens device nodes read-write, so the manifest marks it active: it runs only when asked for.
"""

from __future__ import annotations

import warnings

from probe_core.api import Unavailable, each_card, hookimpl, not_applicable
from probe_core.sysfs.sighting import AVOIDED
from probe_pyamdgpuinfo import nodes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from probe_core.api import NotApplicable, Request, Sighting, StepDoc
    from probe_pyamdgpuinfo.nodes import Node

    Make = Callable[[str, int], Any]
    """The library's `GPUInfo`, which has no types."""

_HANGS: StepDoc = {
    "step": "responding",
    "status": "broken",
    "evidence": AVOIDED,
    "code": "driver-hangs",
}
MHZ = 1_000_000
# The fields that the library alone would fill in, where it cannot be used.
_FIELDS = ("name", "memory.parts", "clocks")
PLACEHOLDER = "AMD Radeon Graphics"
"""What newer libdrm calls every card that its amdgpu.ids lacks: no name of anything."""


@hookimpl
def probe_devices(request: Request) -> NotApplicable | Iterator[Sighting]:
    """Answer with one sighting per amdgpu render node, also for those that could not be opened."""
    machine = request.machine
    if not machine.live:
        return not_applicable("a recorded machine has no device to open")
    render_nodes = list(nodes.render_nodes(machine))
    if not render_nodes:
        return not_applicable("no render node of the amdgpu driver")
    return _sightings(request, render_nodes)


def _sightings(request: Request, render_nodes: list[Node]) -> Iterator[Sighting]:
    """Yield one by one, so that a crash of the library costs only the cards after it."""
    # Why the library must not be given a node: asking that opens the node already.
    refusals = [
        nodes.refusal(request.machine, node) if may_ask else AVOIDED
        for node, may_ask in each_card(request, render_nodes)
    ]
    make = _library() if None in refusals else None
    for index, (node, refusal) in enumerate(zip(render_nodes, refusals, strict=True)):
        sighting: Sighting = {
            "ids": [node.id],
            "kind": "gpu",
            "vendor": "amd",
            "node_index": {"drm_render": node.minor},
            "unknown": {},
        }
        if refusal == AVOIDED:
            sighting["step_facts"] = [_HANGS]
        if make is None or refusal is not None:
            sighting["unknown"] |= dict.fromkeys(_FIELDS, refusal or "not queried")
        else:
            request.touching(node.id)
            _query(sighting, make, node, index)
        yield sighting


def _library() -> Make:
    try:
        # It does not declare that it can do without the global interpreter lock: a free-threaded
        # Python takes the lock back, in this process alone, and warns of it.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            from pyamdgpuinfo import (  # type: ignore[import-untyped, import-not-found, unused-ignore]
                GPUInfo,
            )
    except ImportError as error:
        raise Unavailable(
            f"pyamdgpuinfo cannot be imported: {error}",
            code="library-missing",
            fix="pip install pyamdgpuinfo (Linux on x86-64 only)",
        ) from error
    make: Make = GPUInfo
    return make


def _query(sighting: Sighting, make: Make, node: Node, index: int) -> None:
    """Add what the library reports; a card that fails has the reason, and hides no other."""
    unknown = sighting["unknown"]
    try:
        card = make(node.path, index)
        clocks = card.query_max_clocks()
    except (OSError, RuntimeError, ValueError) as error:  # ValueError: a name that is not UTF-8
        unknown |= dict.fromkeys(_FIELDS, f"pyamdgpuinfo failed on {node.path}: {error}")
        return
    unknown["memory.total"] = "the library does not tell a card from an APU: see the parts"
    if card.name and card.name != PLACEHOLDER:
        sighting["name"] = card.name
    else:
        unknown["name"] = "the library's amdgpu.ids has no name for the card"
    _add_memory(sighting, card)
    _add_clocks(sighting, clocks)


def _add_memory(sighting: Sighting, card: Any) -> None:
    """VRAM and GTT in bytes; what is in use goes to `extra`, being a moment's figure."""
    sizes = {part: card.memory_info.get(f"{part}_size") for part in ("vram", "gtt")}
    parts = {part: size for part, size in sizes.items() if size}
    if parts:
        sighting["memory"] = {"parts": parts}
    else:
        sighting["unknown"]["memory.parts"] = "the driver did not answer AMDGPU_INFO_VRAM_GTT"
    for part, query in (("vram", card.query_vram_usage), ("gtt", card.query_gtt_usage)):
        try:
            sighting.setdefault("extra", {})[f"{part}_used"] = query()
        except RuntimeError:
            sighting["unknown"][f"extra.{part}_used"] = "the driver did not answer"


def _add_clocks(sighting: Sighting, clocks: dict[str, int]) -> None:
    """Maximum clocks: the library gives Hz, and 0 where the driver does not know."""
    for name, key in (("max_mhz", "sclk_max"), ("memory_max_mhz", "mclk_max")):
        if clocks.get(key, 0) >= MHZ:
            sighting.setdefault("clocks", {})[name] = clocks[key] // MHZ
        else:
            sighting["unknown"][f"clocks.{name}"] = "the driver gives no maximum"
