"""One measured link as plain data, from what the agents of its two ends print."""

from __future__ import annotations

from probe_cluster.figures import rate
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from probe_cluster.gather_model import LinkDoc, Message
    from probe_cluster.pairing import Pair
    from probe_cluster.summaries import Nic

    Nics = Mapping[str, Mapping[str, Nic]]
    """Node's id → interface → what its report says of it."""

__all__ = ["FIREWALL", "failed_link", "measured_link"]

SAME_HOST = "same-host"

FIREWALL = "let the nodes connect to each other on all TCP ports, then measure again"
_AGAIN = "check that both nodes run, then measure again"


def failed_link(pair: Pair, reason: str, fix: str | None = None) -> LinkDoc:
    """Return the link of a pair that was not measured."""
    return {
        "ends": list(pair),
        "kind": None,
        "latency": None,
        "round_trip": None,
        "bandwidth": None,
        "bandwidths": [None, None],
        "interfaces": [None, None],
        "speed": None,
        "reason": reason,
        "fix": fix or _AGAIN,
    }


def measured_link(
    pair: Pair, answers: Sequence[Message], hellos: Sequence[Message], nics: Nics
) -> LinkDoc:
    """Return the link of a pair; each agent measures what arrives at its end.

    Latency is half of the median round trip, bandwidth that of the slower direction.
    """
    rates = [rate(answer.get("rate")) for answer in answers]
    received = [None if value is None else float(round(value)) for value in rates]
    trips = [rate(answer.get("round_trip")) for answer in answers]
    trip = next((value for value in trips if value is not None), None)
    speeds = [value for value in received if value is not None]
    interfaces = [_interface(*ends) for ends in zip(answers, hellos, strict=True)]
    kind, speed = _hardware(pair, hellos, interfaces, nics)
    enough = len(speeds) == 2
    return {
        "ends": list(pair),
        "kind": kind,
        "latency": None if trip is None else round(trip / 2, 9),
        "round_trip": None if trip is None else round(trip, 9),
        "bandwidth": min(speeds) if enough else None,
        # What the second end receives is the direction from the first.
        "bandwidths": received[::-1],
        "interfaces": interfaces,
        "speed": speed,
        "reason": None if enough else "too few bytes arrived to compute a bandwidth",
        "fix": None if enough else _AGAIN,
    }


def _interface(answer: Message, hello: Message) -> str | None:
    """Return the interface that has the address of the measured connection."""
    pairs = hello.get("addresses")
    for entry in pairs if isinstance(pairs, list) else []:
        if isinstance(entry, list) and len(entry) == 2 and entry[1] == answer.get("address"):
            return clean_text(str(entry[0]), 60) or None
    return None


def _hardware(
    pair: Pair, hellos: Sequence[Message], interfaces: Sequence[str | None], nics: Nics
) -> tuple[str | None, float | None]:
    """Return the kind of both interfaces and the speed of the slower, where the reports say so."""
    if len({str(hello.get("boot")) for hello in hellos}) == 1:
        return SAME_HOST, None
    ends = [
        nics.get(id_, {}).get(interface or "")
        for id_, interface in zip(pair, interfaces, strict=True)
    ]
    kinds = {nic.kind for nic in ends if nic is not None}
    speeds = [nic.bandwidth for nic in ends if nic is not None and nic.bandwidth is not None]
    is_alike = None not in ends and len(kinds) == 1
    return (*kinds,)[0] if is_alike else None, min(speeds) if len(speeds) == 2 else None
