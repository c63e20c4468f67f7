"""The error of a request that cannot be met: asked, visible, hidden and by what, what would do."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from probe_core.model import Report
    from probe_core.model.document import DeviceDoc, LeaseDoc


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


# Checks a request for devices before any model is loaded: by number, UUID, count or layout.


class Selection:
    """Devices that were asked for and may be used.

    `groups` holds one list of devices for each group (one group unless a layout was asked for),
    `devices` all of them in order, `runtime` whose numbers counted. `excluded` maps the ids of
    devices that this process cannot use, whatever the variables are, to why.
    """

    def __init__(
        self,
        groups: Sequence[Sequence[DeviceDoc]],
        runtime: str,
        excluded: Mapping[str, str] | None = None,
    ) -> None:
        self.groups = [list(group) for group in groups]
        self.devices = [device for group in self.groups for device in group]
        self.runtime = runtime
        self.excluded = dict(excluded or {})

    @property
    def ids(self) -> list[str]:
        """Ids of the devices, in order."""
        return [device["id"] for device in self.devices]

    def environ(
        self, report: Report | Mapping[str, Any], environ: Mapping[str, str]
    ) -> dict[str, str | None]:
        """Return the variables that confine a process to these devices (None: to be unset).

        `report` is the one that they were selected from, or its document.
        """
        from probe_core.selection.candidates import report_document
        from probe_core.selection.environment import confine

        return confine(report_document(report), self.devices, environ)

    def __len__(self) -> int:
        return len(self.devices)

    def __repr__(self) -> str:
        return f"Selection({self.ids!r}, runtime={self.runtime!r})"


def select(
    report: Report | Mapping[str, Any],
    wanted: str | None = None,
    *,
    count: int | None = None,
    memory: str | int | None = None,
    runtime: str | None = None,
) -> Selection:
    """Return the devices that a request means, or raise `SelectionError` with what would work.

    `report` is a report or its document, its visibility made for the environment that counts.
    `wanted` is a list of the runtime's numbers (``0,2``), of beginnings of UUIDs (``GPU-1a2b``)
    or of ids (``pci:0000:01:00.0``), mixed as one likes, or a layout (``2x1``: two groups of one
    device each), or ``all``. `count` asks for that many devices of one kind instead; with
    neither, every visible device is meant. `memory` (bytes or ``20GiB``) is what each device must
    have free. `runtime` is whose numbers count (``cuda``); by default that of the primary device's
    vendor.

    Raises `TypeError` or `ValueError` for a `report` that is none.
    """
    from probe_core.selection.candidates import candidates, report_document
    from probe_core.selection.choose import choose

    document = report_document(report)
    groups, name = choose(document, wanted, count=count, memory=memory, runtime=runtime)
    return Selection(groups, name, candidates(document, runtime).excluded())
