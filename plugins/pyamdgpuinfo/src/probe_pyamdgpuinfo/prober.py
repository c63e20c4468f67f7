"""Asks pyamdgpuinfo about AMD GPUs: names from libdrm, memory and clocks from the driver's ioctls.

It opens device nodes read-write, so the manifest marks it active: it runs only when asked for.
"""

from __future__ import annotations

from probe_core.api import Unavailable, hookimpl, not_applicable
from probe_pyamdgpuinfo import nodes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from probe_core.api import NotApplicable, Request
    from probe_pyamdgpuinfo.nodes import Node

MHZ = 1_000_000
PLACEHOLDER = "AMD Radeon Graphics"
"""What newer libdrm calls every card that its amdgpu.ids lacks: no name of anything."""


@hookimpl
def probe_devices(request: Request) -> NotApplicable | Iterator[dict[str, Any]]:
    """Answer with one sighting per amdgpu render node, also for those that could not be asked."""
    machine = request.machine
    if not machine.live:
        return not_applicable("a recorded machine has no device to open")
    cards = list(nodes.render_nodes(machine))
    if not cards:
        return not_applicable("no render node of the amdgpu driver")
    return _sightings(cards, [nodes.why_not(machine, node) for node in cards])


def _sightings(cards: list[Node], reasons: list[str | None]) -> Iterator[dict[str, Any]]:
    """Yield one by one, so that a crash of the library costs only what was not yet asked."""
    make = _library() if None in reasons else None
    for index, (node, reason) in enumerate(zip(cards, reasons, strict=True)):
        fields: dict[str, Any] = {
            "ids": [f"pci:{node.address}"],
            "kind": "gpu",
            "vendor": "amd",
            "node_index": {"drm_render": node.minor},
        }
        if reason is None and make is not None:
            fields |= _ask(make, node, index)
        else:
            fields["unknown"] = dict.fromkeys(("name", "memory.parts", "clocks"), reason)
        yield fields


def _library() -> Callable[[str, int], Any]:
    try:
        from pyamdgpuinfo import (  # type: ignore[import-untyped, import-not-found, unused-ignore]
            GPUInfo,
        )
    except ImportError as error:
        raise Unavailable(
            f"pyamdgpuinfo cannot be imported: {error}",
            code="library-missing",
            fix="pip install pyamdgpuinfo (Linux on x86-64 only)",
        ) from error
    make: Callable[[str, int], Any] = GPUInfo
    return make


def _ask(make: Callable[[str, int], Any], node: Node, index: int) -> dict[str, Any]:
    """Return what the library says; a card that fails is told and hides no other."""
    try:
        card = make(node.path, index)
        clocks = card.query_max_clocks()
    except (OSError, RuntimeError, ValueError) as error:  # ValueError: a name that is not UTF-8
        reason = f"pyamdgpuinfo failed on {node.path}: {error}"
        return {"unknown": dict.fromkeys(("name", "memory.parts", "clocks"), reason)}
    unknown = {"memory.total": "the library does not distinguish a card from an APU: see the parts"}
    sighting: dict[str, Any] = {"unknown": unknown}
    if card.name and card.name != PLACEHOLDER:
        sighting["name"] = card.name
    else:
        unknown["name"] = "the library's amdgpu.ids has no name for the card"
    _add_memory(sighting, unknown, card)
    _add_clocks(sighting, unknown, clocks)
    return sighting


def _add_memory(sighting: dict[str, Any], unknown: dict[str, str], card: Any) -> None:
    """VRAM and GTT in bytes; what is in use goes to `extra`, being a moment's figure."""
    sizes = {part: card.memory_info.get(f"{part}_size") for part in ("vram", "gtt")}
    parts = {part: size for part, size in sizes.items() if size}
    if parts:
        sighting["memory"] = {"parts": parts}
    else:
        unknown["memory.parts"] = "the driver did not answer AMDGPU_INFO_VRAM_GTT"
    used = {}
    for part, query in (("vram", card.query_vram_usage), ("gtt", card.query_gtt_usage)):
        try:
            used[f"{part}_used"] = query()
        except RuntimeError:
            unknown[f"extra.{part}_used"] = "the driver did not answer"
    if used:
        sighting["extra"] = used


def _add_clocks(sighting: dict[str, Any], unknown: dict[str, str], clocks: dict[str, int]) -> None:
    """Maximum clocks: the library gives Hz, and 0 where the driver does not know."""
    for name, key in (("max_mhz", "sclk_max"), ("memory_max_mhz", "mclk_max")):
        if clocks.get(key, 0) >= MHZ:
            sighting.setdefault("clocks", {})[name] = clocks[key] // MHZ
        else:
            unknown[f"clocks.{name}"] = "the driver gives no maximum"
