"""The error of a request that cannot be met: asked, visible, hidden and by what, what would do."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_core.model.document import LeaseDoc

__all__ = ["SelectionError"]


class SelectionError(ValueError):
    """A request for devices that cannot be met on this node, in this environment.

    The message is for people. For code: `code` is one word, ``syntax``, ``unknown``, ``hidden``,
    ``uncertain``, ``repeated``, ``too-few``, ``memory``, ``busy`` or ``occupied``; `asked` the
    request in words; `unmet` the condition that failed; `runtime` whose numbers counted; `visible`
    the ids that it shows, in its order; `hidden` maps hidden ids to why; `device` is the id that
    the failure is about, `variable` the environment variable that causes it, `fix` the nearest
    thing that would work (each None where there is none); `leases` are the leases in the way of a
    ``busy`` one, as `probe leases --json` lists them.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        asked: str,
        unmet: str = "",
        runtime: str | None = None,
        visible: Sequence[str] = (),
        hidden: Mapping[str, str] | None = None,
        fix: str | None = None,
        device: str | None = None,
        variable: str | None = None,
        leases: Sequence[LeaseDoc] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.asked = asked
        self.unmet = unmet or message
        self.runtime = runtime
        self.visible = list(visible)
        self.hidden = dict(hidden or {})
        self.fix = fix
        self.device = device
        self.variable = variable
        self.leases = list(leases)
