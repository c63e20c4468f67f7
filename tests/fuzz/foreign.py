"""What strangers write: values, texts and files, most of them nearly right."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import strategies as st

from probe_core.api import NotApplicable
from probe_core.isolation.wire import encode
from probe_core.pipeline.failures import check_finding
from probe_core.pipeline.validate import check_sighting

_NUMBERS = (
    "0 1 -1 010 1_000 +5 0x10de 0X 1e999 -1e999 nan inf 1.5 ٣ ² 1abc 4294967296"
    " 18446744073709551616"
)
NUMBERS = [*_NUMBERS.split(), "9" * 30, "9" * 5000, "0x" + "f" * 5000, ""]
"""How a number may be written, also where none fits. Python refuses more than 4,300 digits."""

ODD = ["\0", "\x1b[2J", "\u202e", "\ud800", "\udcff", "é", "\n", "\t", " ", "/", "..", "a" * 300]

_WORDS = (
    "kind device end status ok timeout reason ids pci:0000:01:00.0 uuid:GPU-1 x:1 gpu npu name"
    " memory total free parts links peer extra unknown schema probers acme when os any_path"
    " priority api deadline_s active finding code what why fix devices id 1.0 linux /dev/x *"
)
WORDS = [*_WORDS.split(), *ODD, ""]

_VALUES = [None, True, False, -1, 0, 1, 2.5, 1 << 63, 10**30, -(10**400), 1e308, 5e-324, [], {}]
_VALUES += [float("nan"), float("inf")]

_IDS = "pci:0000:01:00.0 pci:0000:02:00.0 uuid:GPU-1 uuid:MIG-1 dt:/gpu x:1".split()
_FIELDS = (
    "name pci memory clocks links extra unknown parent share node_index cpu"
    " driver backends peaks units cores bandwidth dt power_state"
).split()


def encoded(text: str) -> bytes:
    """Return text as bytes, lone surrogates too."""
    return text.encode("utf-8", "surrogatepass")


_PIECES = [encoded(text) for text in [*NUMBERS, *ODD]] + [b"\xff", b"\xc3", b'"', b"[", b"{", b","]


class Chance(Random):
    """Makes inputs up. The seed alone makes the same ones again: ``Chance(bytes.fromhex(…))``.

    Strategies put together out of Hypothesis's own take ten times as long for one input.
    """

    def __init__(self, seed: bytes) -> None:
        super().__init__(seed)
        self.start = seed

    def __repr__(self) -> str:
        return f"Chance(bytes.fromhex({self.start.hex()!r}))"

    def word(self) -> str:
        """Return a word that means something somewhere, or an odd text."""
        return self.choice(WORDS) if self.random() < 0.8 else self.letters()

    def letters(self) -> str:
        """Return up to eight characters of any script."""
        return "".join(chr(self.randrange(0x110000)) for _ in range(self.randrange(9)))

    def words(self, among: Sequence[str] = WORDS, between: str = " ") -> str:
        """Return up to seven words, of those `among`, numbers and odd texts."""
        pools = [among, among, among, NUMBERS, ODD]
        return between.join(self.choice(self.choice(pools)) for _ in range(self.randrange(8)))

    def value(self, depth: int = 3) -> Any:
        """Return any value of JSON, and the numbers that it has no word for."""
        kind = self.randrange(8)
        if depth and kind == 0:
            return [self.value(depth - 1) for _ in range(self.randrange(5))]
        if depth and kind <= 2:
            return {self.word(): self.value(depth - 1) for _ in range(self.randrange(5))}
        return self.choice(_VALUES) if kind <= 4 else self.word()

    def device(self) -> Any:
        """Return what a prober could yield for a device; seldom not even a table."""
        if self.random() < 0.05:
            return self.value()
        device = {
            "ids": [self.choice(_IDS) for _ in range(self.randrange(3))] or self.value(),
            "kind": self.choice(["gpu", "gpu", "npu", "cpu", "display", self.word()]),
            "vendor": self.choice(["nvidia", "amd", "intel", "apple", "arm", self.value()]),
        }
        return device | {name: self.value() for name in self.sample(_FIELDS, self.randrange(6))}

    def mutate(self, *examples: bytes) -> bytes:
        """Return an example with up to four places cut, overwritten or filled."""
        data = self.choice(examples)
        for _ in range(self.randrange(5)):
            at = self.randrange(len(data) + 1)
            put = self.choice(_PIECES) if self.random() < 0.7 else self.randbytes(self.randrange(9))
            data = data[:at] + put + data[at + self.choice([0, 1, 2, 8, 64]) :]
        return data

    def alter(self, example: Any) -> Any:
        """Return a JSON document like the example, up to four of its values replaced or missing."""
        document = json.loads(json.dumps(example))
        for _ in range(self.randrange(1, 5)):
            self._alter(document)
        return document

    def _alter(self, place: Any) -> None:
        while place:
            key = self.choice(list(place) if isinstance(place, dict) else range(len(place)))
            if isinstance(place[key], (dict, list)) and place[key] and self.random() < 0.8:
                place = place[key]
            elif isinstance(place, dict) and self.random() < 0.3:
                del place[key]
                return
            else:
                place[key] = self.value()
                return

    def content(self) -> bytes:
        """Return what a small file may hold where a kernel writes a number or a word."""
        if self.random() < 0.3:
            return self.randbytes(self.randrange(60))
        return encoded(self.choice(NUMBERS) if self.random() < 0.5 else self.words()) + b"\n"

    def files(self, examples: Mapping[str, bytes], most: int = 4) -> dict[str, bytes]:
        """Return files like the examples, up to `most` of them changed, replaced or missing."""
        found = dict(examples)
        for name in self.sample(list(found), self.randrange(min(most, len(found)) + 1)):
            how = self.random()
            if how < 0.1:
                del found[name]
            else:
                found[name] = self.mutate(found[name]) if how < 0.6 else self.content()
        return found


CHANCES = st.binary(min_size=8, max_size=8).map(Chance)


def files_of(root: Path) -> dict[str, bytes]:
    """Return the regular files below `root`; links are left as they are."""
    found = (path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(root)): path.read_bytes() for path in found}


def devices_in(answer: Any) -> list[dict[str, Any]]:
    """Return what of a prober's answer the core would take, as it would come out of a child."""
    if isinstance(answer, NotApplicable):
        return []
    said = [json.loads(encode(one)) for one in answer]
    assert all(check_finding(one["finding"]) for one in said if "finding" in one)
    checked = (check_sighting(one)[0] for one in said if "finding" not in one)
    return [one for one in checked if one]


_held: dict[Path, dict[str, bytes]] = {}


def write_files(root: Path, files: Mapping[str, bytes]) -> Path:
    """Make `root` hold these files and nothing else; writes only what differs from before."""
    held = _held.setdefault(root, {})
    root.mkdir(exist_ok=True)
    for name in held.keys() - files.keys():
        (root / name).unlink()
        _remove_empty((root / name).parent, root)
    for name, content in files.items():
        if held.get(name) != content:
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    _held[root] = dict(files)
    return root


def _remove_empty(folder: Path, root: Path) -> None:
    while folder != root:
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent
