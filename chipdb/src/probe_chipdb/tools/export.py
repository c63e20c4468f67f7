"""`export DIR`: the table for programs that are not Python: chips.json, chips.csv, hardware.ts.

Built with each release from the same data. Every figure keeps its source, each file the licence.
"""

import csv
import io
import json
import os
from collections.abc import Iterable

from probe_chipdb._version import __version__
from probe_chipdb.chip import Chip, Clock, Memory
from probe_chipdb.chip_peaks import find, natural_accumulator
from probe_chipdb.database import Database
from probe_chipdb.formats import BY, FORMATS, cells
from probe_chipdb.peaks import (
    ACCUMULATORS,
    CONFIDENCES,
    DTYPES,
    PATHS,
    SPARSITIES,
    STATED,
    VARIANTS,
    Peak,
)
from probe_chipdb.table import CHIP, READS, parts
from probe_chipdb.tools.writing import replace_text

FORMAT = 1
LICENCE = "Apache-2.0"
NOTICE = (
    f"probe-chipdb {__version__}, {LICENCE}. Peaks are theoretical, in TFLOPS (TOPS for integers), "
    "one fused multiply-add counted as two, of one device as the operating system shows it."
)
CSV_PEAKS = {
    f"{dtype}_{path}": f"{dtype}.{path}.{natural_accumulator(dtype, path)}"
    for path in ("matrix", "vector")
    for dtype in ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "fp4", "int8", "int4")
}
"""Columns of the CSV to rate keys: dense, with the accumulator that people mean."""

Json = dict[str, object]


def write(db: Database, into: str) -> list[str]:
    """Write the files into a folder; their paths."""
    os.makedirs(into, exist_ok=True)
    chips = db.chips()
    files = {
        "chips.json": json.dumps(document(db, chips), ensure_ascii=False, indent=1) + "\n",
        "chips.csv": table(db, chips),
        "formats.json": json.dumps(formats_document(db), ensure_ascii=False, indent=1) + "\n",
        "chips.schema.json": json.dumps(schema(), indent=1) + "\n",
        "hardware.ts": typescript(db, chips),
    }
    for name, text in files.items():
        replace_text(os.path.join(into, name), text)
    return [os.path.join(into, name) for name in files]


def document(db: Database, chips: Iterable[Chip]) -> Json:
    """The whole table: chips with figures, architectures with rates, and the sources of both."""
    archs = {arch.id: arch for arch in db.archs()}
    entries = [entry(chip) for chip in chips]
    keys = {key for chip in chips for key in source_keys(chip)}
    keys |= {key for arch in archs.values() for key in arch.sources}
    return {
        "format": FORMAT,
        "version": db.version,
        "licence": LICENCE,
        "notice": NOTICE,
        "chips": entries,
        "architectures": [
            {
                "id": arch.id,
                "name": arch.name,
                "family": arch.family,
                "vendor": arch.vendor,
                "unit": arch.unit,
                "rates": arch.rates,
                "sparse": {"factor": arch.sparse_factor, "keys": sorted(arch.sparse_keys)},
                "derivable": arch.derivable,
                "sources": arch.sources,
                "confidence": arch.confidence,
            }
            for arch in archs.values()
        ],
        "sources": {key: db.source(key) for key in sorted(keys)},
    }


def formats_document(db: Database) -> Json:
    """Number formats by architecture: what is known; else the reason, by who would have it."""
    archs: dict[str, list[dict[str, str]]] = {}
    keys: set[str] = set()
    text = db.formats()
    reasons = {cell.by: cell.reason for cell in cells("-", text)}  # of an id that no row has
    for arch in db.archs():
        known = []
        for cell in cells(arch.id, text):
            if cell.state or cell.reason != reasons[cell.by]:
                known.append(cell.as_json())
                keys.update(cell.source.split(", ") if cell.source else ())
        if known:
            archs[arch.id] = known
    return {
        "format": FORMAT,
        "version": db.version,
        "licence": LICENCE,
        "notice": NOTICE.partition(". ")[0],
        "formats": list(FORMATS),
        "by": list(BY),
        "unknown": reasons,
        "architectures": archs,
        "sources": {key: db.source(key) for key in sorted(keys)},
    }


_PEAK_SCHEMA: Json = {
    "type": "object",
    "required": [
        "dtype",
        "path",
        "accumulate",
        "sparsity",
        "clock",
        "tflops",
        "source",
        "confidence",
    ],
    "properties": {
        "dtype": {"enum": list(DTYPES)},
        "path": {"enum": list(PATHS)},
        "accumulate": {"enum": list(ACCUMULATORS)},
        "sparsity": {"enum": list(SPARSITIES)},
        "variant": {"enum": list(VARIANTS)},
        "tflops": {"type": "number", "description": "of one device; TOPS for integers"},
        "low": {"type": "number", "description": "the bottom of a range, whose top is tflops"},
        "condition": {"type": "string", "description": "what decides within the range"},
        "published": {"type": "number", "description": "the vendor's own figure"},
        "confirmed_by": {"enum": list(STATED)},
        "confidence": {"enum": list(CONFIDENCES)},
        "basis": {"enum": ["derived", "published", "override"]},
        "source": {"type": "string"},
    },
}


def schema() -> Json:
    """The JSON Schema of chips.json: what a reader may rely on; more members may come."""
    text, number = {"type": "string"}, {"type": "number", "exclusiveMinimum": 0}
    texts = {"type": "array", "items": text}
    chip = {
        "type": "object",
        "required": ["id", "name", "kind", "vendor", "devices_per_board", "confidence", "sources"],
        "properties": {
            **dict.fromkeys(("id", "name", "vendor", "series", "arch", "codename", "unit"), text),
            **dict.fromkeys(("no_peaks", "note"), text),
            **dict.fromkeys(("aliases", "pci", "dt", "gpu_id", "sources"), texts),
            "kind": {"enum": ["gpu", "npu", "accelerator"]},
            "year": {"type": "integer"},
            "power_w": {**number, "description": "of the board"},
            "power_per_device_w": {**number, "description": "power_w / devices_per_board"},
            "devices_per_board": {"type": "integer", "minimum": 1},
            "bandwidth": {**number, "description": "bytes per second"},
            "confidence": {"enum": list(CONFIDENCES), "description": "of counts and clocks"},
            "peaks": {"type": "array", "items": _PEAK_SCHEMA},
            "reads": {
                "type": "array",
                "items": {"type": "object", "required": list(READS), "additionalProperties": text},
            },
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "chips.json of probe-chipdb",
        "type": "object",
        "required": ["format", "version", "licence", "notice", "chips", "architectures", "sources"],
        "properties": {
            "format": {"const": FORMAT},
            "chips": {"type": "array", "items": chip},
            "architectures": {"type": "array", "items": {"type": "object", "required": ["id"]}},
            "sources": {"type": "object", "additionalProperties": {"type": "object"}},
        },
    }


def source_keys(chip: Chip) -> list[str]:
    """The documents behind a chip's figures: its own, its architecture's, the published ones."""
    arch = chip.architecture()
    published = [source for _, source in chip.published.values()]
    overrides = [row[4] for row in parts(chip.fields[CHIP.index("override")])]
    listed = [key for keys in overrides for key in keys.split(", ")]
    measured = [row.source for row in chip.sustained]
    return [
        *chip.sources,
        *(arch.sources if arch else ()),
        *published,
        *listed,
        *measured,
        *chip.beside_sources,
    ]


def entry(chip: Chip) -> Json:
    """All of one chip that is known."""
    clock, memory = chip.clock, chip.memory
    peaks = chip.peaks()
    values: Json = {
        "id": chip.id,
        "name": chip.name,
        "aliases": chip.aliases,
        "kind": chip.kind,
        "vendor": chip.vendor,
        "series": chip.series,
        "arch": chip.arch,
        "codename": chip.codename,
        "year": chip.year,
        "units": chip.units,
        "units_range": chip.units_range,
        "unit": chip.unit,
        "cores": chip.cores,
        "clock_mhz": _filled(clock),
        "memory": _filled(memory),
        "bandwidth": chip.bandwidth,
        "power_w": chip.power,
        "power_low_w": chip.power_low,
        "devices_per_board": chip.boards,
        "power_per_device_w": _per_device(chip),
        "pci": chip.pci,
        "dt": chip.dt,
        "gpu_id": chip.gpu_id,
        "peaks": [{**peak.as_json(), "basis": peak.basis} for peak in peaks],
        "no_peaks": chip.why_no_peaks(),
        "sources": chip.sources,
        "confidence": chip.confidence,
        "power_limits_w": chip.power_limits,
        "power_limits_at": chip.power_limits_at,
        "interconnect": _links(chip),
        "sram_mib": chip.sram,
        "ecc_share": chip.ecc,
        "sustained": [measured.as_json() for measured in chip.sustained],
        "reads": [dict(zip(READS, row, strict=True)) for row in chip.reads],
        "note": chip.note,
    }
    return {name: value for name, value in values.items() if value not in (None, (), {}, [])}


def _filled(part: Clock | Memory) -> Json:
    """The members that are known."""
    values = {name: getattr(part, name) for name in part.__slots__}
    return {name: value for name, value in values.items() if value is not None}


def titles(db: Database, keys: Iterable[str]) -> dict[str, str]:
    """Source keys to "publisher: title", in the order given."""
    sources = {key: source for key in keys if (source := db.source(key))}
    return {key: f"{source['publisher']}: {source['title']}" for key, source in sources.items()}


def table(db: Database, chips: Iterable[Chip]) -> str:
    """One line a chip, for spreadsheets; empty cells are unknown, or a path that is not there.

    Where `boost_low_mhz` has a value, figures are the top of a range, whose bottom is in that ratio
    below it; `range_set_by` is what decides.
    """
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        ("id", "name", "vendor", "kind", "arch", "year", "units", "unit", "boost_mhz",
         "boost_low_mhz", "range_set_by", "memory_gib", "memory_type", "bandwidth_gbs", "power_w",
         "devices_per_board", "power_per_device_w", "pci", "aliases",
         *CSV_PEAKS, *(f"{column}_low" for column in CSV_PEAKS),
         *(f"{column}_confidence" for column in CSV_PEAKS),
         "no_peaks", "sources", "source_titles", "confidence", "licence")
    )  # fmt: skip
    for chip in chips:
        peaks = chip.peaks()
        figures = [find(peaks, rate) for rate in CSV_PEAKS.values()]
        memory = chip.memory
        writer.writerow(
            (chip.id, chip.name, chip.vendor, chip.kind, chip.arch, chip.year, chip.units,
             chip.unit, chip.clock.boost, chip.clock.boost_low, chip.clock.set_by, memory.gib,
             memory.type, memory.gbs, chip.power, chip.boards, _per_device(chip),
             " ".join(chip.pci), "; ".join(chip.aliases),
             *(f"{peak.tflops:.4g}" if peak else None for peak in figures),
             *(f"{peak.low:.4g}" if peak and peak.low else None for peak in figures),
             *(peak.confidence if peak else None for peak in figures), chip.why_no_peaks(),
             " ".join(chip.sources), "; ".join(titles(db, chip.sources).values()),
             chip.confidence, LICENCE)
        )  # fmt: skip
    return out.getvalue()


def _links(chip: Chip) -> Json | None:
    links = chip.interconnect
    return None if links is None else {"kind": links[0], "gbs": links[1]}


def _per_device(chip: Chip) -> float | None:
    """Watts of one device: a board's power is shared by its devices, whose peaks are their own."""
    return None if chip.power is None else round(chip.power / chip.boards, 2)


def half_precision(peaks: tuple[Peak, ...]) -> Peak | None:
    """Dense fp16 with fp32 accumulation where there are matrix units, else of the vector units."""
    for rate in ("fp16.matrix.fp32", "bf16.matrix.fp32", "fp16.vector.fp16", "fp32.vector.fp32"):
        if figure := find(peaks, rate):
            return figure
    return None


_HEADER = """\
// {notice}
// https://www.apache.org/licenses/LICENSE-2.0
// Generated by `python -m probe_chipdb export`; the form is that of Hugging Face's hardware list.

export interface HardwareSpec {{
	/** Dense TFLOPS of `rate`: fp16 with fp32 accumulation on matrix units where there are any. */
	tflops: number;
	/** The bottom of a range, where the maker of the machine or a mode sets the clock. */
	tflopsLow?: number;
	/** What decides within the range. */
	condition?: string;
	/** Data type, path and accumulator of `tflops`. */
	rate: string;
	/** GiB as sold; several where products of one name differ in nothing else. */
	memory?: number[];
	/** GB/s */
	bandwidth?: number;
	/** CUDA compute capability. */
	computeCapability?: number;
	/** Power of the board in watts: divide by `devicesPerBoard` for that of one device. */
	power?: number;
	/** Devices that share the board and its power; `tflops` is one device's. */
	devicesPerBoard?: number;
	/** PCI ids: vvvv:dddd, with /subsystem or @revision. */
	pci?: string[];
	/** Other names that tools print. */
	aliases?: string[];
	/** Of `tflops`: vendor, third-party, recalled, derived, measured or community. */
	confidence: string;
	releaseYear?: number;
	/** Ids of the products. */
	ids: string[];
	/** How the figure came about, and from which documents: keys of `SOURCES`. */
	source: string;
}}

/** Documents: publisher and title. */
export const SOURCES: Record<string, string> = {sources};

"""


def typescript(db: Database, chips: Iterable[Chip]) -> str:
    """Names to specifications, by vendor: only products with a figure; and the documents."""
    vendors: dict[str, dict[str, Json]] = {}
    keys: set[str] = set()
    for chip in chips:
        peak = half_precision(chip.peaks())
        if peak is None:
            continue
        keys.update(source_keys(chip))
        specs = vendors.setdefault(chip.vendor.upper(), {})
        _add(specs, chip, _spec(chip, peak))
    body = json.dumps(vendors, ensure_ascii=False, indent="\t")
    documents = json.dumps(titles(db, sorted(keys)), ensure_ascii=False, indent="\t")
    head = _HEADER.format(notice=NOTICE, sources=documents)
    return f"{head}export const SKUS: Record<string, Record<string, HardwareSpec>> = {body};\n"


def _add(specs: "dict[str, Json]", chip: Chip, spec: Json) -> None:
    """One entry for products of one name and figure; a second figure has the id in its name."""
    name = chip.name
    same = specs.get(name)
    if same is None:
        specs[name] = spec
    elif all(same.get(key) == spec.get(key) for key in ("tflops", "rate", "bandwidth", "power")):
        sizes = {*_sizes(same), *_sizes(spec)}
        if sizes:
            same["memory"] = sorted(sizes)
        same["ids"] = [*_ids(same), chip.id]
    else:
        specs[f"{name} ({chip.id.partition('/')[2]})"] = spec


def _sizes(spec: Json) -> list[float]:
    sizes = spec.get("memory")
    return sizes if isinstance(sizes, list) else []


def _ids(spec: Json) -> list[str]:
    ids = spec["ids"]
    return ids if isinstance(ids, list) else []


def _spec(chip: Chip, peak: Peak) -> Json:
    memory = chip.memory
    capability = _capability(chip)
    spec: Json = {
        "tflops": round(peak.tflops, 2),
        "tflopsLow": None if peak.low is None else round(peak.low, 2),
        "condition": peak.condition,
        "rate": peak.rate,
        "memory": None if memory.gib is None else [memory.gib],
        "bandwidth": memory.gbs,
        "computeCapability": capability,
        "power": chip.power,
        "devicesPerBoard": chip.boards if chip.boards > 1 else None,
        "pci": list(chip.pci) or None,
        "aliases": list(chip.aliases) or None,
        "confidence": peak.confidence,
        "releaseYear": chip.year,
        "ids": [chip.id],
        "source": peak.source,
    }
    return {name: value for name, value in spec.items() if value is not None}


def _capability(chip: Chip) -> float | None:
    arch = chip.architecture()
    listed = (
        arch.column("compute_capability").split("|") if arch and chip.vendor == "nvidia" else []
    )
    return float(listed[0]) if len(listed) == 1 and listed[0] else None


# `site DIR`: one searchable page for all chips, from the data alone; it needs no server.
#
# The list loads one compact file. What a chip's own view shows comes from a file of its vendor,
# which is a script, because browsers refuse to fetch data beside a page that is opened from a disk.

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


def write_site(db: Database, into: str) -> list[str]:
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
        replace_text(paths[-1], text)
    return paths + write(db, into)


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


def _index(db: Database, chips: tuple[Chip, ...]) -> Json:
    figures = sum(len(chip.peaks()) for chip in chips)
    about = (
        f"{len(chips):,} chips, {figures:,} theoretical peaks, each with its source. "
        f"Version {db.version}, {LICENCE}."
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


def _details(db: Database, chips: list[Chip]) -> Json:
    entries: dict[str, Json] = {}
    cited: dict[str, object] = {}
    for chip in chips:
        used = list(dict.fromkeys(source_keys(chip)))
        cited.update((key, db.source(key)) for key in used)
        entries[chip.id] = {**entry(chip), "sources_used": used}
    archs = {chip.arch: chip for chip in chips if chip.arch}
    formats = {arch: _formats(chip) for arch, chip in archs.items()}
    return {"chips": entries, "sources": cited, "formats": formats}


def _formats(chip: Chip) -> list[list[str]]:
    """Of each known cell: the format, by whom, its state, the release, and the source."""
    known = [cell for cell in chip.formats() if cell.state]
    return [[cell.format, cell.by, str(cell.state), cell.release, cell.source] for cell in known]
