"""What a person says that a node should have: `8xh100`, read into its parts.

    4xL40S + 1xA2            accelerators by name, each with its count
    8xH100:80GB,nvlink=18    with what each of them must have at least
    p5.48xlarge              what a cloud's type of machine has
    none                     no accelerator

A name is anything that chipdb knows, a vendor, a kind, or a type of `machine_types`. Nothing here
looks at a machine: `probe_core.pipeline.expected` compares.
"""

from __future__ import annotations

import re

from probe_core.likeness import did_you_mean
from probe_core.sizes import parse_size
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

NOTHING = "none"
"""Expectation of a node without accelerators."""

GRAMMAR = "write [COUNTx]NAME[:SIZE], joined by +, as in 8xh100 or 4xl40s+1xa2"

MAX_COUNT = 1024
"""Accelerators of a node: fifteen times those of the largest that are sold."""

MAX_LENGTH = 500

# A + between a name's own words joins nothing: "Ryzen AI Max+ 395".
_JOIN = re.compile(r"\s+\+\s+|\+(?=\s*\d+\s*[x×*])")
# "8xh100", "8x h100" and "8 x h100", but not "7900 xtx".
_COUNT = re.compile(r"(\d{1,4})(?:\s+[x×*]\s+|[x×*]\s*)(.+)", re.IGNORECASE | re.DOTALL)


class Wanted:
    """Some equal accelerators: how many, of which name, and what each must have at least.

    `memory` is in bytes, `width` in PCIe lanes, `nvlinks` the active ones, `driver` a version or
    the beginning of one, `profile` and `instances` the MIG instances of each card (0: undivided).
    None: whatever.
    """

    def __init__(self, count: int, name: str) -> None:
        self.count = count
        self.name = name
        self.memory: int | None = None
        self.width: int | None = None
        self.nvlinks: int | None = None
        self.driver: str | None = None
        self.profile: str | None = None
        self.instances: int | None = None


def read(text: str) -> tuple[Wanted, ...]:
    """Return the parts of an expectation; empty for `none`. Raises `ValueError` with a sentence."""
    if len(text) > MAX_LENGTH:
        raise ValueError(f"longer than {MAX_LENGTH} characters")
    if text.strip().lower() == NOTHING:
        return ()
    return tuple(map(_wanted, _JOIN.split(text)))


def _wanted(text: str) -> Wanted:
    name, _, attributes = text.partition(":")
    match = _COUNT.fullmatch(name.strip())
    if match and int(match[1]) > MAX_COUNT:  # "7900xtx" is a name
        match = None
    count = int(match[1]) if match else 1
    name = " ".join((match[2] if match else name).split())
    if not name:
        raise ValueError(f"a name is missing; {GRAMMAR}")
    if not count:
        raise ValueError(f"0 of {clean_text(name, 80)}: write {NOTHING} for none at all")
    wanted = _of_type(count, name) or Wanted(count, name)
    for attribute in filter(None, map(str.strip, attributes.split(","))):
        key, equals, value = attribute.partition("=")
        if equals:
            _set(wanted, key.strip().lower(), value.strip())
        else:
            wanted.memory = _size(attribute)
    return wanted


def _of_type(count: int, name: str) -> Wanted | None:
    """Return what a cloud's type of machine has; None of a name that is no type."""
    if not {*"._-"}.intersection(name):
        return None
    from probe_core.model.machine_types import of_type

    machine = of_type(name)
    return None if machine is None else Wanted(count * machine.number, machine.name)


def _size(text: str) -> int:
    """Return bytes. Products are named in GB and have so many GiB: an H100 80GB 79.6 GiB."""
    plain = text.strip().upper()
    return parse_size(f"{plain[:-2]}GiB" if plain.endswith("GB") else text)


def _set(wanted: Wanted, key: str, value: str) -> None:
    if key not in ATTRIBUTES:
        hint = did_you_mean(key, ATTRIBUTES)
        raise ValueError(f"{clean_text(key, 40)!r} is nothing that an accelerator has: {hint}")
    if not value:
        raise ValueError(f"{key}= has no value; {ATTRIBUTES[key]}")
    if key == "memory":
        wanted.memory = _size(value)
    elif key == "driver":
        wanted.driver = value
    elif key == "mig" and value.lower() == NOTHING:
        wanted.instances = 0
    elif key == "mig":
        match = _COUNT.fullmatch(value)
        wanted.instances, wanted.profile = (int(match[1]), match[2]) if match else (1, value)
    else:
        digits = value.lower().removeprefix("x")
        if not digits.isdecimal() or len(digits) > 3:
            raise ValueError(f"{key}={clean_text(value, 40)} is no whole number")
        if key == "lanes":
            wanted.width = int(digits)
        else:
            wanted.nvlinks = int(digits)


ATTRIBUTES: Mapping[str, str] = {
    "memory": "memory of each, as 80GB; the name may be left out",
    "lanes": "PCIe lanes of each, as 16",
    "nvlink": "active NVLinks of each, as 18",
    "mig": "MIG instances of each card, as 7x1g.10gb, or none",
    "driver": "version of the driver, or how it begins, as 570",
}
"""What may stand behind the colon, and what it says."""
