"""Whether a device is ok, slow or wrong, by what it computed and how fast it moved data.

A figure is compared with the median of equal devices of the node, and with what `probe bench` or
`probe check --save` kept of the device itself. Arithmetic is compared for its results alone: GPUs
of one model differ by 8 % on average, and 22 % at most, where power limits them (arXiv 2208.11035).
"""

from __future__ import annotations

from statistics import median

from probe_core.commands import measured_amount, measured_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence
    from typing import Literal, TypedDict

    from probe_bench.measuring import Outcome
    from probe_core.model.document import DeviceDoc, MeasuredDoc

    Word = Literal["ok", "slow", "wrong", "not decided"]

    class SlowDoc(TypedDict):
        """A figure that is too low; `reference` is what it was compared with, by `source`."""

        figure: str
        median: float
        reference: float
        source: str
        steady: bool

    class VerdictDoc(TypedDict):
        """What is known of one device. `verdict` is None where nothing was computed."""

        id: str
        name: str | None
        verdict: Word | None
        not_checked: str | None
        products: dict[str, int]
        wrong: list[str]
        slow: list[SlowDoc]
        figures: list[MeasuredDoc]
        problems: list[str]


_LEAST = 3
"""Equal devices of which one can be slow; of two, nobody knows which is right."""

_OF_SIBLINGS = 0.95
"""Of 4,000 simulated nodes of 3, 4 and 8 devices, one of them 10 % slower and all with a noise of
1 %, this share of the median found each slow one, and accused no other; three times the median of
the deviations accused others in 8 to 11 % of the nodes."""

_OF_KEPT = 0.93
"""Of what was kept: temperature and others' load differ from day to day. A judgement."""

_STEADY = 0.05
"""Between the best run and the middle one: above it, runs differ by more than what is looked for
(DGEMM of one GPU varies by less, where nothing disturbs it)."""

_MOVED = ("memory", "link")


def judged(pairs: Sequence[tuple[DeviceDoc, Outcome]]) -> list[VerdictDoc]:
    """Return the verdict of each device."""
    groups = _groups(pairs)
    return [_verdict(device, outcome, groups) for device, outcome in pairs]


def _groups(
    pairs: Sequence[tuple[DeviceDoc, Outcome]],
) -> Mapping[Hashable, list[float]]:
    """Return the medians of equal devices, by what is equal and the figure."""
    groups: dict[Hashable, list[float]] = {}
    for device, outcome in pairs:
        for figure in outcome.figures:
            if figure["median"] is not None:
                groups.setdefault(_key(device, figure), []).append(figure["median"])
    return groups


def _key(device: DeviceDoc, figure: MeasuredDoc) -> Hashable:
    """Return what equal devices share; slots of other widths have links of other speeds."""
    links = device.get("links") or ()
    link = next((link for link in links if link["kind"] == "pcie"), None)
    width = (link.get("width") if link else None) if figure["kind"] == "link" else None
    pci = (device.get("pci") or {}).get("id")
    chip = (device.get("chip") or {}).get("id")
    own = (device["kind"], device["vendor"], device["name"], pci, chip, width)
    return (*own, *_name(figure))


def _name(figure: MeasuredDoc) -> tuple[str | None, ...]:
    return (figure["kind"], figure["figure"], (figure["by"] or "").partition(" ")[0])


def _verdict(
    device: DeviceDoc, outcome: Outcome, groups: Mapping[Hashable, list[float]]
) -> VerdictDoc:
    slow = [entry for figure in outcome.figures if (entry := _slow(device, figure, groups))]
    products = {task["dtype"] or "": count for task, count in outcome.compared if count}
    word: Word | None = "ok" if products else None
    if outcome.wrong:
        word = "wrong"
    elif any(entry["steady"] for entry in slow):
        word = "slow"
    elif slow:
        word = "not decided"
    reasons = dict.fromkeys(reason for _, reason in outcome.problems)
    return {
        "id": device["id"],
        "name": device["name"],
        "verdict": word,
        "not_checked": outcome.refusal or (None if word else next(iter(reasons), "no answer")),
        "products": products,
        "wrong": [reason for _, reason in outcome.wrong],
        "slow": slow,
        "figures": list(outcome.figures),
        "problems": list(reasons),
    }


def _slow(
    device: DeviceDoc, figure: MeasuredDoc, groups: Mapping[Hashable, list[float]]
) -> SlowDoc | None:
    own = figure["median"]
    if own is None or figure["kind"] not in _MOVED:
        return None
    for reference, share, source in _references(device, figure, groups):
        if own < reference * share:
            best = figure["best"] or own
            return {
                "figure": measured_name(figure),
                "median": own,
                "reference": reference,
                "source": source,
                "steady": not figure["disturbed"] and own >= best * (1 - _STEADY),
            }
    return None


def _references(
    device: DeviceDoc, figure: MeasuredDoc, groups: Mapping[Hashable, list[float]]
) -> Iterator[tuple[float, float, str]]:
    siblings = groups[_key(device, figure)]
    if len(siblings) >= _LEAST:
        yield median(siblings), _OF_SIBLINGS, f"the median of {len(siblings)} equal devices"
    for kept in device.get("measured") or ():
        value = kept["median"]
        is_same = _name(kept) == _name(figure) and not kept["disturbed"] and kept["stale"] is None
        if is_same and value is not None:
            yield value, _OF_KEPT, f"what was kept on {(kept['date'] or '')[:10]}"


def to_repeat(verdict: VerdictDoc) -> bool:
    """Return whether a device is to be measured a second time: once too slow is no verdict."""
    return verdict["verdict"] in ("slow", "not decided")


def with_repeat(first: Outcome, second: Outcome) -> Outcome:
    """Return an outcome with the better of two figures each; what was wrong once stays wrong."""
    again = {_name(figure): figure for figure in second.figures}
    figures = []
    for figure in first.figures:
        other = again.get(_name(figure), figure)
        figures.append(max(figure, other, key=lambda one: one["median"] or 0.0))
    wrong = [*first.wrong, *second.wrong]
    return first._replace(figures=figures, wrong=wrong)


def sentence_of(verdict: VerdictDoc) -> str:
    """Return the verdict in one sentence, with its figures."""
    if verdict["wrong"]:
        return verdict["wrong"][0]
    if verdict["slow"]:
        return "; ".join(map(_too_low, verdict["slow"]))
    if verdict["verdict"] is None:
        return verdict["not_checked"] or ""
    counts = ", ".join(f"{count} of {dtype}" for dtype, count in verdict["products"].items())
    compared = [f for f in verdict["figures"] if (f["by"] or "").startswith("tinygrad")]
    names = list(dict.fromkeys(figure["kind"] or "" for figure in compared))
    moved = f"; {' and '.join(names)} moved what they were given" if names else ""
    return f"no error in {sum(verdict['products'].values())} products ({counts}){moved}"


def _too_low(entry: SlowDoc) -> str:
    unit: MeasuredDoc = {"unit": "B/s"}  # type: ignore[typeddict-item]  # the unit is all it reads
    own, reference = (measured_amount(unit, entry[key]) for key in ("median", "reference"))
    part = entry["median"] / entry["reference"]
    text = f"{entry['figure']} {own}, {part:.0%} of {entry['source']}, {reference}"
    return text if entry["steady"] else f"{text}; its runs differ too much to decide"
