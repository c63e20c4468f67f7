"""Which of exo's engines can run on a node, and why the others cannot."""

from __future__ import annotations

from collections.abc import Mapping

from probe_core.model.readiness import native_runtime
from probe_exo.plain import rows, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["engines"]


def engines(document: Mapping[str, Any]) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return values of exo's `Backend`, and for each of the others the reason."""
    node = table(document.get("node"))
    backends = ["MlxCpu"]
    why_not: dict[str, str] = {}
    # MLX's Metal backend needs unified memory: no Intel Mac has it.
    if node.get("os") == "darwin" and node.get("arch") in ("aarch64", "arm64"):
        backends.append("MlxMetal")
    else:
        why_not["MlxMetal"] = "Metal with unified memory needs a Mac with Apple silicon"
    reason = _no_cuda(document)
    if reason is None:
        backends += ["MlxCuda", "Vllm"]
    else:
        why_not |= {"MlxCuda": reason, "Vllm": reason}
    return tuple(backends), why_not


def _no_cuda(document: Mapping[str, Any]) -> str | None:
    """Return why no CUDA device can be used, or None when one can."""
    reasons: list[str] = []
    for device in rows(document.get("devices")):
        if device.get("vendor") != "nvidia" or device.get("kind") not in ("gpu", "accelerator"):
            continue
        seen = table(table(device.get("visibility")).get(native_runtime(device)))
        if seen and seen.get("visible") is not True:
            reasons.append(f"{device['id']}: {seen.get('reason')}")
        elif "cuda" not in (device.get("backends") or ()):
            reasons.append(f"{device['id']}: no CUDA driver answered for it")
        else:
            return None
    return "; ".join(reasons) or "the node has no NVIDIA GPU"
