"""Exo's figures of a report, as plain data: its three numbers, its engines, and why one is missing.

The rule. fp32, fp16 and int8 are the core's shorthands (dense, boost clock; fp32 vector; fp16 the
fastest path that accumulates in fp32; int8 the fastest path), summed over the devices that
`probe_cluster.capacity` counts, or of the one chosen. What is unknown becomes 0.0 here and
nowhere else, and its reason is kept. No data class is imported: `probe export exo` needs none.
"""

from __future__ import annotations

from collections.abc import Mapping

from probe_cluster.planning.offers import offer, table
from probe_core.model.verdict import native_runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypedDict

    from probe_cluster.planning.offers import Offer
    from probe_exo.installed import Installed

    class Figures(TypedDict):
        """What old exo wants to know of a node; `Facts` says what each key means."""

        model: str
        chip: str
        memory: int
        fp32: float
        fp16: float
        int8: float
        reasons: dict[str, str]


def rows(value: object) -> list[Mapping[str, Any]]:
    """Return the tables in a list that hold anything; nothing when it is no list."""
    items: list[Any] = [*value] if isinstance(value, (list, tuple)) else []
    return [row for row in map(table, items) if row]


BACKENDS = ("MlxCpu", "MlxMetal", "MlxCuda", "Vllm")
"""Values of exo's `Backend`."""

MIB = 1 << 20
UNKNOWN_MODEL, UNKNOWN_CHIP = "Unknown Model", "Unknown Chip"

# What old exo calls nodes of these systems; peers show it as it is.
_BOXES = {"linux": "Linux Box", "windows": "Windows Box"}


def figures(report: Mapping[str, Any], devices: str = "all") -> Figures:
    """Return the figures of a Linux or Windows node's report.

    `devices` is ``all``, ``primary``, ``cpu`` or a device's id. Raises `ClusterError` for an id
    that is not there.
    """
    own = offer(report, devices)
    reasons = dict(own["reasons"])
    system = str(table(report.get("node")).get("os"))
    if own["memory_total"] is None:
        reasons["memory"] = reasons.get("memory_total", "unknown")
    return {
        "model": _model(own, _BOXES.get(system, "Box")),
        "chip": _chip(own),
        "memory": (own["memory_total"] or 0) // MIB,
        "fp32": own["fp32"] or 0.0,
        "fp16": own["fp16"] or 0.0,
        "int8": own["int8"] or 0.0,
        "reasons": reasons,
    }


def _chip(own: Offer) -> str:
    """Old exo printed NVIDIA's names in capitals, and its table has them so; others as they are."""
    name = own["chip"]
    if name is None:
        return f"{UNKNOWN_CHIP} (Device: {own['kind'].upper()})"
    return name.upper() if own["vendor"] == "nvidia" else name


def _model(own: Offer, box: str) -> str:
    return f"{box} (Device: CPU)" if own["kind"] == "cpu" else f"{box} ({_chip(own)})"


def engines(
    document: Mapping[str, Any], installed: Installed | None = None
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return values of exo's `Backend` that can run, and for each of the others the reason.

    Without `installed` those that the hardware of a report could run: another node's report does
    not have what is installed there. With it those that are installed too, where that is known.
    """
    node = table(document.get("node"))
    why_not: dict[str, str] = {}
    # MLX's Metal backend needs unified memory: no Intel Mac has it.
    if not (node.get("os") == "darwin" and node.get("arch") in ("aarch64", "arm64")):
        why_not["MlxMetal"] = "Metal with unified memory needs a Mac with Apple silicon"
    reason = _no_cuda(document)
    if reason is not None:
        why_not |= {"MlxCuda": reason, "Vllm": reason}
    if installed is not None:
        why_not = _not_installed(installed, why_not)
    return tuple(name for name in BACKENDS if name not in why_not), why_not


def _not_installed(installed: Installed, why_not: dict[str, str]) -> dict[str, str]:
    """Return `why_not` with what no wheel brings; MLX of any kind computes on the CPU too."""
    from probe_exo.installed import MLX_WHEELS  # here: an export asks for no wheels

    reasons = installed.reasons
    if installed.mlx is not None:
        for name in ("MlxMetal", "MlxCuda"):
            if name != MLX_WHEELS[installed.mlx]:
                why_not = why_not | {name: f"{installed.mlx} is installed"}
    elif "mlx" not in installed.unknown:
        own = reasons.get("mlx", "mlx is not installed")
        why_not = why_not | dict.fromkeys(("MlxCpu", "MlxMetal", "MlxCuda"), own)
    if "vllm" in installed.unknown:
        return why_not
    if installed.vllm is None:
        return why_not | {"Vllm": reasons.get("vllm", "vllm is not installed")}
    if not installed.vllm.endswith("+cpu") and "rocm" not in installed.vllm:
        return why_not
    return {name: reason for name, reason in why_not.items() if name != "Vllm"}


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
