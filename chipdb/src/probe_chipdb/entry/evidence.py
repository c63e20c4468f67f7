"""What vouches for a figure that a vendor states: words that were read, or a memory of them.

A figure is the vendor's (`vendor`) only where its entry has `read`: the place in the document and
its words. The document is its source, which has the address and the date on which it was read.
Else it is `third-party` where a quotation by somebody else was read, or `recalled`.
"""

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from probe_chipdb.entry.fields import (
        ChipEntry,
        OverrideEntry,
        PublishedEntry,
        ReadEntry,
        SourceEntry,
    )

    Fault = tuple[str, str, str]  # field, what is wrong, how to correct it

_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e\+?\d+)?")
_SCALES = (1.0, 1e3, 1e-3, 1e-12)
"""TFLOPS as they are printed: also in PFLOPS, GFLOPS and FLOPS."""
_ROUNDED = 2e-3
"""Relative. A figure is entered as it is printed, or divided by the devices of a board."""


def evidence(figure: "PublishedEntry | OverrideEntry", sources: "Mapping[str, SourceEntry]") -> str:
    """Return the confidence of a vendor's figure: "vendor", "third-party" or "recalled"."""
    source = sources.get(figure["source"])
    if "read" in figure and source is not None and not any(_unread(source)):
        return "vendor"
    is_quotation = source is not None and source["status"] == "third-party-read"
    return "third-party" if is_quotation else "recalled"


def of_counts(entry: "ChipEntry", sources: "Mapping[str, SourceEntry]") -> str:
    """Return the confidence of counts and clocks: unmarked ones are the vendor's where read."""
    named = [sources.get(read["source"]) for read in entry.get("read", ())]
    is_read = any(source is not None and not any(_unread(source)) for source in named)
    return entry.get("confidence") or ("vendor" if is_read else "recalled")


def _unread(source: "SourceEntry") -> "Iterator[str]":
    """Yield what a source lacks of a document that was read."""
    if source["status"] != "read":
        yield f"its status is {source['status']!r}"
    yield from (f"it has no {key}" for key in ("url", "date") if key not in source)


def confidence(figure: "OverrideEntry", sources: "Mapping[str, SourceEntry]") -> str:
    """Return an override's confidence: what its entry says, else what vouches for it."""
    return figure.get("confidence") or evidence(figure, sources)


def is_quoted(value: float, quote: str, boards: int = 1) -> bool:
    """Return whether a quotation holds a figure, per device or for the board of `boards` devices.

    >>> is_quoted(181.05, "FP16 362.1 TFLOPS", boards=2), is_quoted(4600, "4.6 PFLOPS")
    (True, True)
    """
    printed = [float(text.replace(",", "")) for text in _NUMBER.findall(quote)]
    return any(
        abs(number * scale - value * devices) <= _ROUNDED * value * devices
        for number in printed
        for scale in _SCALES
        for devices in {1, boards}
    )


def figure_faults(
    figure: "PublishedEntry | OverrideEntry", boards: int, source: "SourceEntry | None"
) -> "Iterator[Fault]":
    """Yield what is wrong with the evidence of one figure: none, another's, or other words."""
    field = f'"{figure["rate"]}" {figure.get("sparsity", "dense")}'
    read = figure.get("read")
    if read is None:
        stated = dict(figure).get("confidence")
        if stated == "vendor":
            yield field, "is the vendor's without evidence", _ADD
        return
    if "tflops" in figure and not is_quoted(figure["tflops"], read["quote"], boards):
        fault = f"the quotation {read['quote']!r} does not hold {figure['tflops']:g}"
        yield field, fault, "quote the words with the figure, or correct the figure"
    yield from _source_faults(field, figure["source"], source)


def entry_faults(
    stated: str | None,
    reads: "Iterable[ReadEntry]",
    source_of: "Callable[[str], SourceEntry | None]",
) -> "Iterator[Fault]":
    """Yield what is wrong with the evidence of counts, clocks or rates."""
    if stated == "vendor" and not reads:
        yield "confidence", "is the vendor's without evidence", _ADD
    for read in reads:
        yield from _source_faults("read", read["source"], source_of(read["source"]))


def _source_faults(field: str, key: str, source: "SourceEntry | None") -> "Iterator[Fault]":
    if source is None:
        yield field, f"{key!r} is unknown", "write [source] with what was read"
    for fault in _unread(source) if source is not None else ():
        yield field, f"{key!r} was not read: {fault}", _READ


_ADD = 'add read = { at = "page 3", quote = "..." }, or leave confidence out: then it is recalled'
_READ = 'give the source status = "read", url and date'
