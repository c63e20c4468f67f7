"""Rounds from lines of `probe watch --json --all`: those of a file, and those that a host prints.

Everything in them is a stranger's: each line is bounded, parsed, and checked as a sampler's own
answer is. What does not pass is counted and left out.
"""

from __future__ import annotations

import re
from datetime import datetime

from probe_core.commands import CommandError, parse_json
from probe_core.model.ids import KINDS, normalise_id
from probe_core.model.sample_check import check_sample
from probe_core.wording import clean_text
from probe_watch.rounds import Happening

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from probe_core.model.document import DeviceDoc, EventDoc, SampleDoc

MOST_LINE = 1 << 20
"""Bytes of a line: a device with 1,024 processes has 80,000."""

_MOST_DEVICES = 1024
_MOST_ROUND = 64 << 20
"""Bytes of a round: beyond all devices with all their processes; the rest is left out."""
_FRAME = ("time", "alerts", "latency_ms", "prober")
_EVENTS = ("added", "removed", "changed")


class Reader:
    """Makes rounds of lines. `skipped` counts those that are no sample, event or device of ours."""

    def __init__(self) -> None:
        self.skipped = 0
        self.devices: dict[str, DeviceDoc] = {}
        self._time = ""
        self._samples: list[SampleDoc] = []
        self._events: list[EventDoc] = []

    def feed(self, line: bytes) -> Happening | None:
        """Take a line; return the round before it where it is the first of another one."""
        document = _table(line)
        time = document.get("time") if document is not None else None
        if document is None or not isinstance(time, str):
            self.skipped += bool(line.strip())
            return None
        ended = self.end() if time != self._time else None
        self._time = time
        self._take(document)
        return ended

    def _take(self, document: Mapping[str, object]) -> None:
        event = document.get("event")
        if event == "device":
            self._describe(document)
        elif event in _EVENTS:
            parts = [clean_text(str(document.get(key))) for key in ("device", "change")]
            self._events.append({"event": event, "device": parts[0], "change": parts[1]})  # type: ignore[typeddict-item]
        elif event is None:
            raw = {key: value for key, value in document.items() if key not in _FRAME}
            sample, _ = check_sample(raw, "recorded")
            if sample is not None and len(self._samples) < _MOST_DEVICES:
                self._samples.append(sample)
            else:
                self.skipped += 1
        elif event != "alert":  # those are made again, by the rules of here
            self.skipped += 1

    def _describe(self, document: Mapping[str, object]) -> None:
        kind, name, vendor, memory = (document.get(k) for k in ("kind", "name", "vendor", "memory"))
        try:
            identity = normalise_id(str(document.get("device")))
        except ValueError:
            self.skipped += 1
            return
        if len(self.devices) < _MOST_DEVICES and kind in KINDS:
            self.devices[identity] = {  # type: ignore[typeddict-item]
                "id": identity, "ids": [identity], "kind": str(kind),
                "name": clean_text(name) if isinstance(name, str) else None,
                "vendor": clean_text(vendor) if isinstance(vendor, str) else None,
                "memory": {"kind": memory} if memory in ("shared", "unified") else None,
            }  # fmt: skip

    def end(self) -> Happening | None:
        """Return the round of the lines so far; None where there is none."""
        if not self._samples:
            return None
        moment = seconds_of(self._time)
        made = Happening(moment, self._samples, self._events, None, ())
        self._samples, self._events = [], []
        return made


def _table(line: bytes) -> Mapping[str, object] | None:
    if len(line) > MOST_LINE or line[:1] != b"{":  # a banner, a wrapper's own words
        return None
    try:
        document = parse_json(line)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def seconds_of(text: str) -> float:
    """Return ``2026-11-21T22:14:03.512Z`` as seconds since 1970; 0 where it is no time."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0


_TIME = re.compile(rb'\{"time": ?"([^"]{1,40})"')
_DEVICE = re.compile(rb'"event": ?"device"')


class Recording:
    """A file of rounds, of which only the places are kept: an hour costs no more than a minute.

    `times` has the moment of each round, `note` says what could not be read, "" where all was.
    Raises `CommandError` for a file without a round.
    """

    def __init__(self, path: str) -> None:
        self.times: list[float] = []
        self._places: list[int] = []
        self._end = 0
        self._path = path
        reader, last, skipped, is_cut = Reader(), b"", 0, False
        try:
            with open(path, "rb") as file:
                while line := file.readline(MOST_LINE):
                    found = _TIME.match(line)
                    if found is None or line[-1:] != b"\n":
                        skipped += 1
                    elif _DEVICE.search(line):
                        reader.feed(line)
                    elif found[1] != last:
                        last = found[1]
                        self._places.append(self._end)
                        self.times.append(seconds_of(last.decode("ascii", "replace")))
                    self._end += len(line)
                    is_cut = line[-1:] != b"\n"
        except OSError as error:
            raise CommandError(f"--replay {path}: {error.strerror}") from None
        if not self._places:
            how = "record one with `probe watch --json --all > FILE`"
            raise CommandError(f"--replay {path}: no sample is in it; {how}")
        self.devices = list(reader.devices.values())
        parts = [f"{skipped} lines are no samples"] if skipped else []
        parts += ["the file ends in the middle of a line"] if is_cut else []
        self.note = "; ".join(parts)

    def __len__(self) -> int:
        return len(self._places)

    def round(self, number: int) -> Happening | None:
        """Return a round by its number, from 0; None where nothing of it can be read any more."""
        reader = Reader()
        start, end = self._places[number], [*self._places[number + 1 : number + 2], self._end][0]
        try:
            with open(self._path, "rb") as file:
                file.seek(start)
                for line in file.read(min(end - start, _MOST_ROUND)).splitlines():
                    reader.feed(line)
        except OSError:  # truncated or gone meanwhile
            pass
        return reader.end()
