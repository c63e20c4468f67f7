"""What a compute node is, as read-only tools for language models: `probe mcp`."""

from __future__ import annotations

__all__: list[str] = []
