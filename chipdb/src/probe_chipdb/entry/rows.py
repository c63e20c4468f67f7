"""Packs good entries into the lines and index keys of a table: the same for every origin."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from probe_chipdb.brand import brand_key
from probe_chipdb.entry.judge import Data
from probe_chipdb.row import (
    ARCH,
    BRAND,
    CHIP,
    CLOCK,
    CPUID,
    MEMORY,
    MIDR,
    OVERRIDE,
    PUBLISHED,
    SOURCE,
    escape,
    scalar,
)
from probe_chipdb.spelling import normalise, with_die
from probe_chipdb.table import Table

Row = list[str]
_LISTS = frozenset((
    "pci", "dt", "gpu_id", "aliases", "source", "compute_capability", "gfx", "platform",
    "metal_family", "prefix", "suffix", "exact",
))  # fmt: skip
_INNER = {
    "published": PUBLISHED,
    "override": OVERRIDE,
    "cpuid": CPUID,
    "midr": MIDR,
    "brand": BRAND,
}


def to_table(data: Data, origin: str, version: str) -> Table:
    """The entries as a table that can be asked at once."""
    return Table(origin, version, {name: text.encode() for name, text in texts(data).items()})


def texts(data: Data) -> dict[str, str]:
    """The four files of a table."""
    chips = [_chip(chip) for chip in data.chips.values()]
    archs = [_arch(name, arch) for name, arch in data.archs.items()]
    sources = [
        [key, *(scalar(source.get(column)) for column in SOURCE[1:])]
        for key, source in data.sources.items()
    ]
    return {
        "chips.txt": _lines(chips),
        "archs.txt": _lines(archs),
        "sources.txt": _lines(sources),
        "index.txt": _lines([[key, " ".join(ids)] for key, ids in _index(data).items()]),
    }


def _lines(rows: Iterable[Row]) -> str:
    lines = ("\t".join(row) for row in rows)
    # Sorted by the key alone, as bytes: "a\t" against "a-b\t" must not depend on the tab.
    ordered = sorted(lines, key=lambda line: line.partition("\t")[0].encode())
    return "".join(line + "\n" for line in ordered)


def _chip(chip: Mapping[str, Any]) -> Row:
    row = []
    for column in CHIP:
        value = chip.get(column)
        if column == "clock":
            row.append(_parts(value, CLOCK))
        elif column == "memory":
            row.append(_parts(value, MEMORY))
        elif column == "explain":
            row.append("|".join(f"{key};{escape(why)}" for key, why in (value or {}).items()))
        else:
            row.append(_value(column, value))
    return row


def _arch(name: str, arch: Mapping[str, Any]) -> Row:
    match = arch.get("match", {})
    row = [name]
    for column in ARCH[1:]:
        if column == "rates":
            row.append(_rates(arch.get("rates", {}), "|"))
        elif column == "sparse":
            sparse = arch.get("sparse")
            row.append(f"{scalar(sparse['factor'])};{','.join(sparse['keys'])}" if sparse else "")
        elif column == "isa":
            steps = arch.get("isa", [])
            row.append(
                "|".join(
                    f"{','.join(step['flags'])};{_rates(step['rates'], ',')}" for step in steps
                )
            )
        else:
            value = arch.get(column, match.get(column))
            row.append(
                "|".join(value)
                if column in ("pci", "dt", "gpu_id") and value
                else _value(column, value)
            )
    return row


def _value(column: str, value: Any) -> str:
    if column in _INNER:
        return "|".join(
            _parts({"sparsity": "dense", **item}, _INNER[column]) for item in value or ()
        )
    if column in _LISTS:
        return "|".join(escape(item) for item in value or ())
    return scalar(value)


def _parts(value: Mapping[str, Any] | None, names: tuple[str, ...]) -> str:
    if not value:
        return ""
    return ";".join(
        ",".join(escape(str(item)) for item in inner)
        if isinstance(inner := value.get(name), list)
        else scalar(inner)
        for name in names
    )


def _rates(rates: Mapping[str, float], separator: str) -> str:
    return separator.join(f"{key}={scalar(float(ops))}" for key, ops in rates.items())


def _index(data: Data) -> dict[str, list[str]]:
    index: dict[str, list[str]] = {}
    chips: dict[str, dict[str, Any]] = data.chips
    archs: dict[str, dict[str, Any]] = data.archs

    def add(key: str, value: str) -> None:
        values = index.setdefault(key, [])
        if value not in values:
            values.append(value)

    for id_, chip in sorted(chips.items()):
        for key in chip_keys(chip):
            add(key, id_)
    # "Rembrandt [Radeon 680M]" stands on every chip of that PCI id; plain "Radeon 680M" is one.
    owned = frozenset(index)
    for id_, chip in sorted(chips.items()):
        for key in loose_keys(chip):
            if key not in owned:
                add(key, id_)
        _file_masks(add, "gm", chip.get("gpu_id", ()))
    for id_, arch in sorted(archs.items()):
        for key in _arch_keys(arch):
            add(key, id_)
        _file_masks(add, "agm", arch.get("match", {}).get("gpu_id", ()))
    return index


def chip_keys(chip: Mapping[str, Any]) -> Iterator[str]:
    """Every key under which a chip can be found: a letter for its kind, and the value."""
    yield f"v:{chip['vendor']}"
    for pci in chip.get("pci", ()):
        yield f"p:{pci}"
    for compatible in chip.get("dt", ()):
        yield f"d:{normalise(compatible, 'dt')}"
    for register in chip.get("gpu_id", ()):
        yield f"g:{_register(register)}"
    if chip.get("arch") and chip.get("units"):
        yield f"u:{chip['arch']}/{chip['units']}"
    for name in (chip["name"], *chip.get("aliases", ())):
        if key := with_die(name) or normalise(name):
            yield f"n:{key}"


def loose_keys(chip: Mapping[str, Any]) -> Iterator[str]:
    """Shorter spellings, filed where no whole name claims them.

    What the brackets of pci.ids names hold, and names without their brand ("RTX 4090", "MI300X").
    """
    for name in (chip["name"], *chip.get("aliases", ())):
        key = normalise(name)
        if key and with_die(name):
            yield f"n:{key}"
        for brand, series in _BRANDS:
            if key.startswith(f"{brand} {series}"):
                yield f"n:{key[len(brand) + 1 :]}"


_BRANDS = (
    ("geforce", "rtx "),
    ("geforce", "gtx "),
    ("geforce", "gt "),
    ("radeon", "rx "),
    ("instinct", "mi"),
)


def _arch_keys(arch: Mapping[str, Any]) -> Iterator[str]:
    match = arch.get("match", {})
    for letter, column in (
        ("c", "compute_capability"),
        ("x", "gfx"),
        ("m", "metal_family"),
        ("ap", "pci"),
        ("ad", "dt"),
        ("al", "platform"),
    ):
        for value in match.get(column, ()):
            yield f"{letter}:{value}"
    for register in match.get("gpu_id", ()):
        yield f"ag:{_register(register)}"
    for rule in match.get("cpuid", ()):
        yield f"i:{rule['vendor']}/{rule['family']}"
    for rule in match.get("midr", ()):
        yield f"r:{int(rule['implementer'], 16):#x}/{int(rule['part'], 16):#x}"
    for rule in match.get("midr", ()):
        yield f"cn:{brand_key(rule['name'].partition(' (')[0])}"
    if "brand" in match:
        yield "b:"
    if "generic" in match:
        yield f"y:{match['generic']}"


def _register(register: str) -> str:
    """`arm:0xa867`, or `arm:0xa007/0xf00f` with the value masked."""
    vendor, _, value = register.partition(":")
    plain, _, mask = value.partition("/")
    if not mask:
        return f"{vendor}:{int(plain, 16):#x}"
    return f"{vendor}:{int(plain, 16) & int(mask, 16):#x}/{int(mask, 16):#x}"


def _file_masks(add: Callable[[str, str], None], letter: str, registers: Iterable[str]) -> None:
    """The masks in use, by vendor: a reader has to try each."""
    for register in registers:
        vendor, _, value = register.partition(":")
        mask = value.partition("/")[2]
        if mask:
            add(f"{letter}:{vendor}", f"{int(mask, 16):#x}")
