"""A small data set of its own, so that the reader's tests do not move with the real data."""

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

import probe_chipdb
from probe_chipdb.database import Database
from probe_chipdb.entry.files import read_folder
from probe_chipdb.entry.pack import to_table
from probe_chipdb.tools.build import outdated


def pytest_sessionstart() -> None:
    """Refuse to test a table that is not of this data: its answers would be of another day."""
    if reason := outdated(str(Path(probe_chipdb.__path__[0]).parents[1])):
        raise pytest.UsageError(f"chipdb: {reason}")


SOURCES = """
[book]
title = "A datasheet"
publisher = "Acme"
ref = "acme.example: datasheet.pdf"
status = "read"
url = "https://acme.example/datasheet.pdf"
date = "2026-11-02"
"""

SOURCES += """
[guide]
title = "A guide"
publisher = "Beta"
ref = "beta.example: guide.pdf"
status = "cited"
"""

ARCHS = """
[one]
name = "One"
family = "one"
vendor = "acme"
unit = "SM"
cores_per_unit = 128
match = { compute_capability = ["8.9"], product = "geforce", prefix = ["fast"] }
sparse = { factor = 2, keys = ["fp16.matrix.fp32"] }
source = ["book"]
confidence = "recalled"
[one.rates]
"fp32.vector.fp32" = 256
"fp16.matrix.fp32" = 512

[two]
name = "Two"
family = "one"
vendor = "acme"
unit = "SM"
match = { compute_capability = ["8.9"], product = "pro", exact = ["pro 9"], suffix = ["edition"] }
source = ["book"]
confidence = "recalled"
[two.rates]
"fp32.vector.fp32" = 256
"fp16.matrix.fp32" = 1024

[three]
name = "Three"
family = "three"
vendor = "beta"
unit = "CU"
match = { gfx = ["gfx1100"], gpu_id = ["arm:0xa007/0xf00f"], dt = ["beta,three"] }
source = ["book"]
confidence = "measured"
[three.rates]
"fp32.vector.fp32" = 128

[vague]
name = "Vague"
family = "vague"
vendor = "beta"
unit = "core"
derive = false
match = { metal_family = ["apple1"], pci = ["beef:0001"] }
source = ["book"]
confidence = "recalled"
[vague.rates]
"fp32.vector.fp32" = 64
"""

ACME = """
[family]
title = "Fast"
vendor = "acme"
source = ["book"]

[[chip]]
id = "acme/fast-1"
name = "Acme Fast 1"
arch = "one"
year = 2024
units = 100
clock = { base = 1000, boost = 2000 }
memory = { gib = 16, type = "GDDR6", bus = 256, gbs = 512 }
power = 200
pci = ["aaaa:0001", "aaaa:0009"]
published = [{ rate = "fp16.matrix.fp32", tflops = 102, source = "book" }]

[[chip]]
id = "acme/fast-1-8gb"
name = "Acme Fast 1"
arch = "one"
units = 100
clock = { boost = 2000 }
memory = { gib = 8, type = "GDDR6", bus = 128, gbs = 256 }
pci = ["aaaa:0002"]

[[chip]]
id = "acme/fast-1-laptop"
name = "Acme Fast 1 Laptop GPU"
arch = "one"
units = 80
clock = { boost = 1500, boost_low = 1000, set_by = "laptop" }
power = 100
power_low = 40
pci = ["aaaa:0003", "aaaa:0009"]

[[chip]]
id = "acme/fast-oem"
name = "Acme Fast OEM"
arch = "one"
units = 90
pci = ["aaaa:0003/aaaa:1111", "aaaa:0003@c1", "aaaa:0003/aaaa:2222@c2"]

[[chip]]
id = "acme/npu"
name = "Acme NPU"
kind = "npu"
dt = ["acme,npu-v2"]
published = [{ rate = "int8.matrix.int32", tflops = 6, source = "book", READ }]
""".replace("READ", 'read = { at = "page 2", quote = "6 TOPS" }')

BETA = """
[family]
title = "Beta"
vendor = "beta"
source = ["book"]

[[chip]]
id = "beta/b-40"
name = "Beta B Max"
arch = "three"
units = 40
clock = { boost = 1000 }
aliases = ["Beta Graphics"]
gpu_id = ["arm:0xa867"]
dt = ["beta,soc-gpu"]

[[chip]]
id = "beta/b-30"
name = "Beta B Max"
arch = "three"
units = 30
clock = { boost = 1000, matrix = 800 }
aliases = ["Beta Graphics"]
override = [
  { rate = "fp32.vector.fp32", tflops = 9, reason = "a slower path", source = "guide" },
  { rate = "fp16.matrix.fp32", tflops = 20, reason = "extra unit", source = "book", CONFIDENCE },
]
""".replace("CONFIDENCE", 'confidence = "measured"')

Make = Callable[..., Database]


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    return folder


def _written(folder: Path) -> Path:
    return write(
        folder,
        {
            "sources/s.toml": SOURCES,
            "arch/a.toml": ARCHS,
            "chips/acme/fast.toml": ACME,
            "chips/beta/beta.toml": BETA,
        },
    )


def _opened(folder: Path, **options: object) -> Database:
    entries = read_folder(str(folder))
    assert [str(problem) for problem in entries.problems] == []
    return Database(to_table(entries, "built", "1"), **options)  # type: ignore[arg-type]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder that passes the check."""
    return _written(tmp_path / "data")


@pytest.fixture(scope="session")
def make() -> Make:
    """Opens a data folder, with site files and a path of vendor packages."""
    return _opened


@pytest.fixture(scope="session")
def db(tmp_path_factory: pytest.TempPathFactory) -> Database:
    """The table of that data."""
    return _opened(_written(tmp_path_factory.mktemp("data")))


@pytest.fixture(scope="session")
def real() -> Database:
    """The table that ships."""
    return probe_chipdb.load(packages=False)
