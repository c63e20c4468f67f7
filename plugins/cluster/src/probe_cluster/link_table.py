"""The measured links as a table: the slowest first, and what is wrong with them."""

from __future__ import annotations

from probe_cluster.link_units import bits, milliseconds
from probe_core.commands import folded, grid, paint
from probe_core.wording import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from probe_cluster.gather_model import LinkDoc
    from probe_cluster.gathering import Gathered
    from probe_core.commands import Context

__all__ = ["link_lines"]

_HEAD = ("LINK", "ROUND TRIP", "BANDWIDTH", "BACK", "BY")
_RIGHT = ("ROUND TRIP", "BANDWIDTH", "BACK")

_SHOWN = 28
"""Links that have a row: all of eight nodes. `--json` has all."""


def link_lines(gathered: Gathered, context: Context) -> Iterator[str]:
    """Yield the lines; nothing where nothing was measured."""
    if not gathered.links:
        return
    names = {node.id: node.name for node in gathered.nodes.values()}
    measured = [link for link in gathered.links if link["bandwidth"] is not None]
    shown = sorted(measured, key=lambda link: link["bandwidth"] or 0.0)[:_SHOWN]
    if shown:
        rows = [_HEAD, *(_row(link, names) for link in shown)]
        encoded = [tuple(context.encodable(cell) for cell in row) for row in rows]
        head, *body = grid(encoded, context.width, right=_RIGHT, wrap="LINK")
        yield ""
        yield paint(head, "dim", context.colour)
        yield from body
    yield ""
    yield from folded(
        context.encodable(_total(gathered.links, measured, len(shown))), context.width
    )
    for finding in gathered.findings:
        sentence = f"{finding['severity']}: {finding['what']}: {finding['why']}; {finding['fix']}"
        for line in folded(context.encodable(sentence), context.width, hanging="  "):
            yield paint(line, "yellow", context.colour)


def _row(link: LinkDoc, names: dict[str, str]) -> tuple[str, ...]:
    there, back = (_bits(value) for value in link["bandwidths"])
    interfaces = dict.fromkeys(filter(None, link["interfaces"]))
    path = ", ".join(filter(None, [link["kind"], *interfaces]))
    ends = " – ".join(names.get(end, end) for end in link["ends"])
    trip = link["round_trip"]
    return (ends, "" if trip is None else milliseconds(trip), there, back, path)


def _bits(value: float | None) -> str:
    return "" if value is None else bits(value)


def _total(links: Sequence[LinkDoc], measured: Sequence[LinkDoc], shown: int) -> str:
    sentence = f"{len(measured)} of {counted(len(links), 'pair')} measured"
    speeds = [link["bandwidth"] for link in measured if link["bandwidth"] is not None]
    trips = [link["round_trip"] for link in measured if link["round_trip"] is not None]
    if speeds and trips:
        rates = _span(bits(min(speeds)), bits(max(speeds)))
        times = _span(milliseconds(min(trips)), milliseconds(max(trips)))
        sentence += f": {rates}, round trips {times}"
    if shown < len(measured):
        sentence += f"; the {shown} slowest are shown, --json has all"
    return sentence


def _span(least: str, most: str) -> str:
    return least if least == most else f"{least} to {most}"
