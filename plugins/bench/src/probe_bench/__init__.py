"""What a node achieves: arithmetic and memory bandwidth, measured in a child under a lease."""

from __future__ import annotations

__all__: list[str] = []
