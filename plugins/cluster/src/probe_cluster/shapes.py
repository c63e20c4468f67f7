"""Shapes of known models as plain figures; `known_models` has all that is known of them."""

from __future__ import annotations

__all__ = ["SHAPES"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    SHAPES: dict[str, tuple[int, int | None, int, int, int, int]]
    """Name → (parameters, active parameters, layers, hidden size, KV heads, head dimension)."""


def __getattr__(name: str) -> object:
    if name != "SHAPES":
        raise AttributeError(f"module 'probe_cluster.shapes' has no attribute {name!r}")
    shapes = _shapes()
    globals()[name] = shapes
    return shapes


def _shapes() -> dict[str, tuple[int, int | None, int, int, int, int]]:
    from probe_cluster.known_models import known_model, known_names

    shapes = {}
    for name in known_names():
        model = known_model(name)
        if model is None or model.shape.params is None:
            continue
        shape, params = model.shape, model.shape.params
        active = params.active if shape.experts else None
        sizes = (shape.layers or 0, shape.hidden or 0, shape.kv_heads or 0, shape.head_dim or 0)
        shapes[name] = (params.total, active, *sizes)
    return shapes
