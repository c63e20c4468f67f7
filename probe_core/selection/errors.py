"""The error of a request that cannot be met: asked, visible, hidden and by what, what would do."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Device = Mapping[str, Any]

__all__ = ["SelectionError", "unmet"]

SHOWN = 8


class SelectionError(ValueError):
    """A request for devices that cannot be met on this node, in this environment.

    `asked` is the request in words, `visible` the ids that the consumer sees in its order,
    `hidden` maps hidden ids to why, `fix` is the nearest thing that would work (or None), and
    `code` one word for scripts: ``syntax``, ``unknown``, ``hidden``, ``uncertain``, ``repeated``,
    ``too-few``, ``memory``, ``busy``.
    """

    def __init__(
        self,
        problem: str,
        *,
        code: str,
        asked: str,
        visible: Sequence[str] = (),
        hidden: Mapping[str, str] | None = None,
        fix: str | None = None,
    ) -> None:
        super().__init__(problem)
        self.code = code
        self.asked = asked
        self.visible = list(visible)
        self.hidden = dict(hidden or {})
        self.fix = fix


def unmet(
    problem: str,
    *,
    code: str,
    asked: str,
    consumer: str,
    visible: Sequence[Device],
    hidden: Mapping[str, str],
    fix: str | None = None,
) -> SelectionError:
    """Return the error with everything that is visible and hidden told in its message."""
    lines = [f"asked for {asked}: {problem}"]
    shown = [f"{at}: {_named(device)}" for at, device in enumerate(visible[:SHOWN])]
    more = f" and {len(visible) - SHOWN} more" if len(visible) > SHOWN else ""
    lines.append(f"visible to {consumer}: {'; '.join(shown) + more if shown else 'nothing'}")
    if hidden:
        told = [f"{name} ({why})" for name, why in list(hidden.items())[:SHOWN]]
        lines.append(f"hidden: {'; '.join(told)}")
    if fix:
        lines.append(f"what would work: {fix}")
    names = [str(device.get("id")) for device in visible]
    return SelectionError(
        "\n".join(lines), code=code, asked=asked, visible=names, hidden=hidden, fix=fix
    )


def _named(device: Device) -> str:
    name = device.get("name")
    return f"{name} ({device.get('id')})" if name else str(device.get("id"))
