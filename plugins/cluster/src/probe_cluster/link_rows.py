"""One measured link as plain data, from what the agents of its two ends print."""

from __future__ import annotations

from probe_cluster.figures import rate
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_cluster.network_model import LinkDoc, Message
    from probe_cluster.pairing import Pair

    Nics = Mapping[str, Mapping[str, str]]
    """Node's id → interface → kind of its link, from the node's report."""

__all__ = ["failed_link", "measured_link"]

SAME_HOST = "same-host"


def failed_link(pair: Pair, reason: str) -> LinkDoc:
    """Return the link of a pair that was not measured."""
    return {
        "ends": list(pair),
        "kind": None,
        "latency": None,
        "round_trip": None,
        "bandwidth": None,
        "bandwidths": [None, None],
        "interfaces": [None, None],
        "reason": reason,
    }


def measured_link(
    pair: Pair, answers: Sequence[Message], hellos: Sequence[Message], nics: Nics
) -> LinkDoc:
    """Return the link of a pair; each agent measures what arrives at its end.

    Latency is half of the median round trip, bandwidth that of the slower direction.
    """
    received = [rate(answer.get("rate")) for answer in answers]
    trips = [rate(answer.get("round_trip")) for answer in answers]
    trip = next((value for value in trips if value is not None), None)
    speeds = [value for value in received if value is not None]
    interfaces = [_interface(*ends) for ends in zip(answers, hellos, strict=True)]
    return {
        "ends": list(pair),
        "kind": _kind(pair, hellos, interfaces, nics),
        "latency": None if trip is None else trip / 2,
        "round_trip": trip,
        "bandwidth": min(speeds) if len(speeds) == 2 else None,
        # What the second end receives is the direction from the first.
        "bandwidths": received[::-1],
        "interfaces": interfaces,
        "reason": None if len(speeds) == 2 else "too few bytes arrived to tell a bandwidth",
    }


def _interface(answer: Message, hello: Message) -> str | None:
    """Return the interface that has the address of the measured connection."""
    pairs = hello.get("addresses")
    for entry in pairs if isinstance(pairs, list) else []:
        if isinstance(entry, list) and len(entry) == 2 and entry[1] == answer.get("address"):
            return clean_text(str(entry[0]), 60) or None
    return None


def _kind(
    pair: Pair, hellos: Sequence[Message], interfaces: Sequence[str | None], nics: Nics
) -> str | None:
    """Return the kind of the slower interface, where the reports have both."""
    boots = {str(hello.get("boot")) for hello in hellos}
    if len(boots) == 1:
        return SAME_HOST
    kinds = [
        nics.get(end, {}).get(interface or "")
        for end, interface in zip(pair, interfaces, strict=True)
    ]
    return kinds[0] if kinds[0] == kinds[1] else None
