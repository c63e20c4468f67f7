"""`site DIR`: one searchable page for all chips, from the data alone; it needs no server.

The list loads one compact file. What a chip's own view shows comes from a file of its vendor, which
is a script, because browsers refuse to fetch data beside a page that is opened from a disk.
"""

import json
import os

from probe_chipdb.chip import Chip
from probe_chipdb.database import Database
from probe_chipdb.peaks import find
from probe_chipdb.tools import export

_PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "page")
_FILES = ("index.html", "page.css", "page.js")
# Columns of the list: the fastest usual path of each type.
_RATES = {
    "bf16": ("bf16.matrix.fp32", "bf16.vector.bf16", "bf16.vector.fp32"),
    "fp16": ("fp16.matrix.fp32", "fp16.vector.fp16", "fp16.vector.fp32"),
    "fp32": ("fp32.vector.fp32",),
    "tf32": ("tf32.matrix.fp32",),
    "fp8": ("fp8.matrix.fp32",),
    "fp4": ("fp4.matrix.fp32",),
    "int8": ("int8.matrix.int32", "int8.vector.int32"),
    "fp64": ("fp64.matrix.fp64", "fp64.vector.fp64"),
}
_COLUMNS = (
    "id", "name", "vendor", "kind", "year", "memory", "bandwidth", "figures", "search",
    "ranged",
)  # fmt: skip


def write(db: Database, into: str) -> list[str]:
    """Write the page, its data, and the exports beside it; the paths."""
    chips = db.chips()
    files = {name: _read(name) for name in _FILES}
    files["chips.js"] = _script("chipdb", _index(db, chips))
    for vendor in sorted({chip.vendor for chip in chips}):
        own = [chip for chip in chips if chip.vendor == vendor]
        files[f"vendors/{vendor}.js"] = _script(
            f"chipdb.vendors[{_json(vendor)}]", _details(db, own)
        )
    paths = []
    for name, text in files.items():
        paths.append(os.path.join(into, name))
        os.makedirs(os.path.dirname(paths[-1]), exist_ok=True)
        with open(paths[-1], "w", encoding="utf-8", newline="") as file:
            file.write(text)
    return paths + export.write(db, into)


def _read(name: str) -> str:
    with open(os.path.join(_PAGE, name), encoding="utf-8", newline="") as file:
        return file.read()


def _json(value: object) -> str:
    """As JavaScript reads it inside a script: `</script>` and line separators are escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for mark, escaped in (("<", "\\u003c"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029")):
        text = text.replace(mark, escaped)
    return text


def _script(name: str, value: object) -> str:
    return f"window.{name} = {_json(value)};\n"


def _index(db: Database, chips: tuple[Chip, ...]) -> export.Json:
    figures = sum(len(chip.peaks()) for chip in chips)
    about = (
        f"{len(chips):,} chips, {figures:,} theoretical peaks, each with its source. "
        f"Version {db.version}, {export.LICENCE}."
    )
    rows = [_row(chip) for chip in chips]
    columns, dtypes = list(_COLUMNS), list(_RATES)
    return {"about": about, "columns": columns, "dtypes": dtypes, "chips": rows, "vendors": {}}


def _row(chip: Chip) -> list[object]:
    peaks = chip.peaks()
    figures = []
    for rates in _RATES.values():
        values = [peak.tflops for rate in rates if (peak := find(peaks, rate))]
        figures.append(float(f"{max(values):.4g}") if values else None)
    memory = chip.memory
    return [
        chip.id, chip.name, chip.vendor, chip.kind, chip.year, memory.gib, memory.gbs, figures,
        _search(chip), int(any(peak.low is not None for peak in peaks)),
    ]  # fmt: skip


def _search(chip: Chip) -> str:
    """What the search looks in: names and ids, in lower case, without blanks and hyphens."""
    texts = dict.fromkeys((chip.name, chip.id, *chip.aliases, *chip.pci))
    squashed = " ".join("".join(text.lower().replace("-", " ").split()) for text in texts)
    return squashed.replace("_", "")


def _details(db: Database, chips: list[Chip]) -> export.Json:
    entries: dict[str, export.Json] = {}
    cited: dict[str, object] = {}
    for chip in chips:
        used = list(dict.fromkeys(export.source_keys(chip)))
        cited.update((key, db.source(key)) for key in used)
        entries[chip.id] = {**export.entry(chip), "sources_used": used}
    return {"chips": entries, "sources": cited}
