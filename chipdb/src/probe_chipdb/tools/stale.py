"""`stale FILE...`: what drivers, id lists and compilers know that the table does not.

The files are given: nothing is fetched. A list may itself be old, so that each result names it.
"""

import json
import os
import re
from collections.abc import Callable, Iterator

from probe_chipdb.candidates import register_keys
from probe_chipdb.database import Database
from probe_chipdb.entry.files import Refused, read_text
from probe_chipdb.exclusions import exclusion
from probe_chipdb.spelling import normalise

# Reads the lists of chips that drivers and compilers ship: each as keys of the table and names.
#
# A reader takes the text of one file. It yields (kind, key, name): "pci" with the key of a PCI id,
# "gpu_id" with an id register, "gfx" and "compute capability" with an architecture.

Listed = tuple[str, str, str]
Reader = Callable[[str], Iterator[Listed]]

# What the brackets and die names of a graphics or compute product hold in pci.ids.
_PRODUCT = {
    "10de": re.compile(
        r"GeForce|Quadro|Tesla|RTX|GTX|NVS|TITAN|Jetson|CMP|\b[ABHLT]\d{2,3}\b|\bG[ABHP]\d{3}"
    ),
    "1002": re.compile(r"Radeon|Instinct|FirePro|FireGL|FireStream"),
    "8086": re.compile(r"Graphics|\bArc\b|\bNPU\b|\bGPU\b"),
}
_NO_CHIP = re.compile(r"Audio|USB|UCSI|HDMI|Bridge|Switch|Thermal|Controller|Host|Function|Virtual")


def nvidia_supported(text: str) -> Iterator[Listed]:
    """supported-gpus.json of NVIDIA's Linux driver."""
    listed = []
    for chip in json.loads(text)["chips"]:
        try:
            listed.append(("pci", _pci("10de", chip["devid"], chip), str(chip["name"])))
        except (ValueError, KeyError, TypeError):
            continue  # one entry of another form hides none of the rest
    if not listed:
        raise ValueError("no entry of this form")
    yield from listed


def nvidia_names(text: str) -> Iterator[Listed]:
    """sChipsReleased of the open GPU kernel modules: device, subsystem, its vendor, name."""
    row = r"\{\s*0x(\w{4}),\s*0x(\w{4}),\s*0x(\w{4}),\s*\"([^\"]+)\""
    for device, subsystem, vendor, name in re.findall(row, text):
        key = f"10de:{device.lower()}"
        whole = f"{key}/{vendor}:{subsystem}".lower() if int(subsystem, 16) else key
        yield "pci", whole, name


def amdgpu_ids(text: str) -> Iterator[Listed]:
    """libdrm's amdgpu.ids: device, revision, name."""
    for line in text.splitlines():
        parts = [part.strip() for part in line.split(",")]
        if len(parts) >= 3 and re.fullmatch(r"[0-9A-Fa-f]{4}", parts[0]):
            yield "pci", f"1002:{parts[0]}@{parts[1].zfill(2)}".lower(), ",".join(parts[2:])


def pci_ids(text: str) -> Iterator[Listed]:
    """The PCI ID Repository: products of the vendors whose names tell a GPU from a bridge."""
    vendor = ""
    for line in text.splitlines():
        if re.match(r"[0-9a-f]{4}  ", line):
            vendor = line[:4]
        elif vendor in _PRODUCT and re.match(r"\t[0-9a-f]{4}  ", line):
            name = line[7:]
            if _PRODUCT[vendor].search(name) and not _NO_CHIP.search(name):
                yield "pci", f"{vendor}:{line[1:5]}", name


def intel_header(text: str) -> Iterator[Listed]:
    """The kernel's include/drm/intel/pciids.h: macros of a platform, each with its ids."""
    platform = ""
    for line in text.splitlines():
        if define := re.match(r"#define INTEL_(\w+)_IDS\(", line):
            platform = define[1]
        for device in re.findall(r"MACRO__\(0x([0-9A-Fa-f]{4})", line):
            yield "pci", f"8086:{device.lower()}", f"Intel Graphics ({platform})"


def freedreno(text: str) -> Iterator[Listed]:
    """Mesa's freedreno_devices.py: chip ids; a patch level of ff stands for all."""
    row = r"GPUId\(chip_id\s*=\s*0x([0-9a-fA-F]+),\s*name\s*=\s*\"([^\"]+)\""
    for value, name in re.findall(row, text):
        yield "gpu_id", f"qualcomm:{int(value, 16) & 0xFFFFFFFF:#010x}", name


def mali(text: str) -> Iterator[Listed]:
    """Arm's libGPUInfo: product ids of Mali and Immortalis."""
    row = r"product_entry\s*\{\s*0x([0-9a-f]+),\s*(\w+),\s*\d+,\s*\"([^\"]+)\""
    for value, mask, name in re.findall(row, text):
        yield "gpu_id", f"arm:0x{value}" + ("/0xf00f" if "NEW" in mask else ""), name


def gfx_targets(text: str) -> Iterator[Listed]:
    """LLVM's AMDGPU targets, in any text that names them; generic targets are none."""
    for target in sorted(set(re.findall(r"\bgfx[0-9]{1,2}[0-9a-f]{2}\b", text))):
        yield "gfx", target, target


def cuda_targets(text: str) -> Iterator[Listed]:
    """Architectures of a CUDA compiler: sm_90, sm_103a, compute_120f."""
    for digits in sorted(set(re.findall(r"\b(?:sm|compute)_([0-9]{2,3})[af]?\b", text)), key=int):
        yield "compute capability", f"{digits[:-1]}.{digits[-1]}", f"sm_{digits}"


def targets(text: str) -> Iterator[Listed]:
    """Both, in any text that names either."""
    yield from gfx_targets(text)
    yield from cuda_targets(text)


_MACHINE = re.compile(
    r"\b(?:Standard_N[CD]\w+|[BV]M\.GPU[\w.-]*\.\d+|(?:p|g|trn|inf|dl)\d\w*(?:-\w+)?\.\w*(?:xlarge|metal)"
    r"|[ag][2-9]x?-\w+gpu-\d+g)\b"
)


def machines(text: str) -> Iterator[Listed]:
    """Types of machine with accelerators of Azure, OCI, EC2 and Google, in any text."""
    for name in sorted(set(_MACHINE.findall(text))):
        yield "machine", name, name


# The first mark that a text holds names its reader.
_READERS: tuple[tuple[str, Reader], ...] = (
    ('"devid"', nvidia_supported),
    ("sChipsReleased", nvidia_names),
    ("INTEL_", intel_header),
    ("GPUId(", freedreno),
    ("product_entry", mali),
    ("\n10de  ", pci_ids),
    ("\n1002  ", pci_ids),
    ("\n8086  ", pci_ids),
    ("gfx9", targets),
    ("gfx1", targets),
    ("sm_", targets),
    ("compute_", targets),
)


def read_list(text: str) -> list[Listed] | None:
    """Every entry of a list in one of the known forms; None for another text."""
    if re.search(r"(?m)^[0-9A-Fa-f]{4},\s*[0-9A-Fa-f]{1,2},\s*\S", text) and '"' not in text[:200]:
        return list(amdgpu_ids(text))
    for mark, reader in _READERS:
        if mark in text:
            try:
                return list(reader(text))
            except (ValueError, KeyError, TypeError, RecursionError):
                return None
    return list(machines(text)) or None


def _pci(vendor: str, device: str, chip: dict[str, str]) -> str:
    key = f"{vendor}:{int(device, 16):04x}"
    if "subvendorid" not in chip:
        return key
    subsystem = f"{int(chip['subvendorid'], 16):04x}:{int(chip['subdeviceid'], 16):04x}"
    return f"{key}/{subsystem}"


_MOST = 32 * 2**20  # bytes; pci.ids has 1.6 MB, the longest list


_NPU = re.compile(r"\bNPU\b|\bVPU\b|\bAccelerat|\bGaudi\b")


class Stale:
    """What lists have beyond the table. missing: how many entries, after a `report`.

    since: entries near older products are left out, and counted. Lists of ids have no dates: an id
    is as old as the product of the table whose PCI id is the nearest of its vendor.
    kind: "gpu" or "npu", by the words of the name; None for both.
    """

    __slots__ = ("_db", "_kind", "_since", "_years", "missing")

    def __init__(self, db: Database, since: int = 0, kind: str | None = None) -> None:
        self._db = db
        self._since = since
        self._kind = kind
        self._years = _years(db) if since else {}
        self.missing = 0

    def report(self, paths: list[str]) -> Iterator[str]:
        """Lines of what is newer than the table; a last line with the counts. Raises OSError."""
        for path in paths:
            name = os.path.basename(path)
            try:
                listed = read_list(read_text(path, _MOST))
            except Refused as refusal:
                yield str(refusal)
                continue
            if listed is None:
                yield f"{name}: no list of a known form; docs/format.md names the forms"
                continue
            lines, older = self.lines(listed)
            self.missing += len(lines)
            left_out = f", {older} near products before {self._since}" if older else ""
            yield f"{name}: {len(listed)} entries, {len(lines)} not in the table{left_out}"
            yield from (f"  {line}" for line in lines)
        yield f"{self.missing} entries are newer than chipdb {self._db.version or 'unreleased'}"

    def lines(self, listed: list[Listed]) -> tuple[list[str], int]:
        """Return the entries that the table lacks, and how many older ones are left out."""
        wanted = [entry for entry in listed if self._kind in (None, _kind(entry[2]))]
        newer = dict.fromkeys(entry for entry in wanted if not _known(self._db, *entry))
        recent = [entry for entry in newer if self._year(entry[1]) >= self._since]
        return [f"{kind} {key}: {name}" for kind, key, name in recent], len(newer) - len(recent)

    def _year(self, key: str) -> int:
        """The year of the nearest product; `since` for a vendor of whom the table has none."""
        vendor, _, device = key.partition("/")[0].partition("@")[0].partition(":")
        years = self._years.get(vendor)
        if not years or not re.fullmatch(r"[0-9a-f]{4}", device):
            return self._since
        at = int(device, 16)
        return years[min(years, key=lambda known: abs(known - at))]


def year_of(date: str) -> int:
    """The year of a date such as 2026-08-01, 2026-08 or 2026. Raises ValueError for none."""
    if not re.fullmatch(r"\d{4}(?:-\d{2}){0,2}", date):
        raise ValueError(f"{date!r} is no date; write YYYY-MM-DD, YYYY-MM or YYYY")
    return int(date[:4])


def _kind(name: str) -> str:
    return "npu" if _NPU.search(name) else "gpu"


def _years(db: Database) -> dict[str, dict[int, int]]:
    """Per PCI vendor: device id to the year of its product."""
    years: dict[str, dict[int, int]] = {}
    for chip in db.chips():
        for pci in chip.pci if chip.year else ():
            vendor, _, device = pci.partition("/")[0].partition("@")[0].partition(":")
            years.setdefault(vendor, {})[int(device, 16)] = chip.year or 0
    return years


def newer(db: Database, text: str) -> list[str]:
    """The entries of one list that the table does not have."""
    return Stale(db).lines(read_list(text) or [])[0]


def _known(db: Database, kind: str, key: str, name: str) -> bool:
    if kind == "pci":
        return _known_pci(db, key, name)
    if kind == "gpu_id":
        return _known_register(db, key)
    if kind == "machine":
        return bool(db.ids_of_name(name))
    return bool(db.ids({"gfx": "x", "compute capability": "c"}[kind] + f":{key}"))


def _known_pci(db: Database, key: str, name: str) -> bool:
    """By its whole key. A subsystem or revision that is not filed may be another product: then
    one of the products of the plain id must have the name.
    """
    plain = key.partition("/")[0].partition("@")[0]
    if db.ids(f"p:{key}") or exclusion({}, plain):
        return True
    same_id = set(db.ids(f"p:{plain}"))
    return not same_id.isdisjoint(db.ids(f"n:{normalise(name)}"))


def _known_register(db: Database, key: str) -> bool:
    vendor, _, value = key.partition(":")
    plain, _, mask = value.partition("/")
    if mask and db.ids(f"g:{vendor}:{int(plain, 16) & int(mask, 16):#x}/{int(mask, 16):#x}"):
        return True
    return any(db.ids(f"g:{key}") for key in register_keys(db, f"{vendor}:{plain}", "gm"))
