"""Lines about the devices that a request leaves out because this process cannot use them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["exclusions"]


def exclusions(excluded: Mapping[str, str]) -> list[str]:
    """Return one line for each reason, with the ids of the devices that it excludes."""
    groups: dict[str, list[str]] = {}
    for name, reason in excluded.items():
        groups.setdefault(reason, []).append(name)
    return [f"leaves out {', '.join(names)}: {reason}" for reason, names in groups.items()]
