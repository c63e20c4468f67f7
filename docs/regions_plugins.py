"""The page of known plugins, made from the list that the core has of them."""

from __future__ import annotations

from blocks import table

__all__ = ["known"]

_HEADINGS = {
    "accelerators": "Accelerators",
    "platforms": "Platforms",
    "tools": "Tools",
}


def known() -> str:
    """Every known plugin, one table a group, by name."""
    from probe_core.testing.scaffold import known_plugins

    parts = []
    for group, heading in _HEADINGS.items():
        rows = [_row(entry) for entry in known_plugins() if entry["group"] == group]
        head = ("plugin", "devices", "needs", "licence", "tested on", "contract kit")
        parts.append(f"## {heading}\n\n{table(head, sorted(rows))}")
    return "\n\n".join(parts)


def _row(entry: dict[str, str]) -> tuple[str, ...]:
    source = entry["source"]
    address = source if "://" in source else f"../../{source}/README.md"
    name = f"[{entry['distribution']}]({address})"
    columns = ("devices", "needs", "licence", "tested")
    return (name, *(entry[column] for column in columns), entry["kit"] or "no prober")
