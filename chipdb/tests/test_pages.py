"""The pages that people look a chip up on, whole: each row, count and source of a small data set."""
# ruff: noqa: E501 - rows are as long as they are written

from collections.abc import Callable
from pathlib import Path

from probe_chipdb.database import Database
from probe_chipdb.tools import pages

Make = Callable[..., Database]

ODD = """\
[family]
title = "Odd | parts"
vendor = "beta"
source = ["guide"]

[[chip]]
id = "beta/range"
name = "Beta Range"
arch = "three"
counts = ["2-4", "8"]
clock = { boost = 1000 }
memory = { gib = 4 }
note = "parts of several counts"

[[chip]]
id = "beta/vgpu"
name = "Beta B-4Q"
unknown = "vgpu"

[[chip]]
id = "beta/counts"
name = "Beta Old"
arch = "three"
memory = { type = "DDR3", gbs = 6.4, bus = 64 }

[[chip]]
id = "beta/new"
name = "Beta New"
year = 2026
published = [
  { rate = "fp16.matrix.fp32", tflops = 30, source = "book" },
  { rate = "int8.matrix.int32", tflops = 60, source = "guide" },
]
"""

INTRO = """\
Figures are per device, dense, at boost clock, in TFLOPS (TOPS for int8); matrix paths accumulate
in fp32 (int8 in int32). An empty cell is unknown, or the chip has no such path. Ask
`db.chip(id).peaks()` for all of them, with the source of each.
"""

PAGES = {
    "acme-fast": """\
# Fast

INTRO


| chip | architecture | units | boost MHz | memory | GB/s | fp32 | fp16 matrix | int8 matrix | sources |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
| Acme Fast 1<br>`acme/fast-1` | one | 100 SM | 2000 | 16 GiB GDDR6 | 512 | 51.2 | 102.4 |  | [book](#book) |
| Acme Fast 1<br>`acme/fast-1-8gb` | one | 100 SM | 2000 | 8 GiB GDDR6 | 256 | 51.2 | 102.4 |  | [book](#book) |
| Acme Fast 1 Laptop GPU<br>`acme/fast-1-laptop` | one | 80 SM | 1000-1500 |  |  | 30.72 | 61.44 |  | [book](#book) |
| Acme Fast OEM<br>`acme/fast-oem` | one | 90 SM |  |  |  |  |  |  | [book](#book) |
| Acme NPU<br>`acme/npu` |  |  |  |  |  |  |  | 6 | [book](#book) |

## Sources

- <a id="book"></a>`book`: A datasheet. Acme; acme.example: datasheet.pdf (read)
""",
    "beta-beta": """\
# Beta

INTRO


| chip | architecture | units | boost MHz | memory | GB/s | fp32 | fp16 matrix | sources |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
| Beta B Max<br>`beta/b-30` | three | 30 CU | 1000 |  |  | 9 | 20 | [book](#book) |
| Beta B Max<br>`beta/b-40` | three | 40 CU | 1000 |  |  | 5.12 |  | [book](#book) |

## Sources

- <a id="book"></a>`book`: A datasheet. Acme; acme.example: datasheet.pdf (read)
""",
    "beta-odd-parts": """\
# Odd | parts

INTRO


| chip | architecture | units | boost MHz | memory | GB/s | fp32 | fp16 matrix | int8 matrix | sources |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
| Beta Old<br>`beta/counts` | three |  |  | DDR3 | 6.4 |  |  |  | [guide](#guide) |
| Beta New<br>`beta/new` |  |  |  |  |  |  | 30 | 60 | [guide](#guide) |
| Beta Range<br>`beta/range` | three | 2-8 CU | 1000 | 4 GiB |  | 1.024 |  |  | [guide](#guide) |
| Beta B-4Q<br>`beta/vgpu` |  |  |  |  |  |  |  |  | [guide](#guide) |

## Notes

- Beta Range: parts of several counts

## Sources

- <a id="book"></a>`book`: A datasheet. Acme; acme.example: datasheet.pdf (read)
- <a id="guide"></a>`guide`: A guide. Beta; beta.example: guide.pdf (cited)
""",
    "index": """\
# Chips

chipdb 1: 11 chips in 3 families.

[Chips without figures, and why](missing.md)


## acme

- [Fast](acme-fast.md) (5)

## beta

- [Beta](beta-beta.md) (2)
- [Odd | parts](beta-odd-parts.md) (4)
""",
    "missing": """\
# Chips without figures

3 of 11 chips have no peak. A virtual GPU, a design that others build, and a sample are no products.

| vendor | chips | without figures | of these products |
| --- | --- | --- | --- |
| acme | 5 | 1 | 1 |
| beta | 6 | 2 | 1 |

## acme

| chip | units | missing | reason |
| --- | --- | --- | --- |
| Acme Fast OEM<br>`acme/fast-oem` | 90 SM | clock | no clock was read in a document, driver or device tree that the table cites |

## beta

| chip | units | missing | reason |
| --- | --- | --- | --- |
| Beta Old<br>`beta/counts` |  | units, clock | neither unit count nor clock was read in a source that the table cites |
| Beta B-4Q<br>`beta/vgpu` |  | rates, units, clock | a virtual GPU is a share of a card, and its profile or host decides which |
""",
    "unread": """\
# Figures that wait for a reader

4 figures in 2 documents are recalled: nobody has read them there. Who opens a document enters address, date and words; docs/format.md says how.

## Acme: A datasheet

`book`, acme.example: datasheet.pdf

- [ ] Beta New (`beta/new`, 2026): dense fp16.matrix.fp32 30
- [ ] Acme Fast 1 (`acme/fast-1`, 2024): dense fp16.matrix.fp32 102

## Beta: A guide

`guide`, beta.example: guide.pdf

- [ ] Beta New (`beta/new`, 2026): dense int8.matrix.int32 60
- [ ] Beta B Max (`beta/b-30`, year unknown): dense fp32.vector.fp32 9
""",
}


def test_pages(data: Path, make: Make, tmp_path: Path) -> None:
    (data / "chips/beta/odd.toml").write_text(ODD)
    paths = [Path(path) for path in pages.write(make(data), str(tmp_path / "pages"))]
    expected = {name: page.replace("INTRO\n", INTRO) for name, page in PAGES.items()}
    assert {path.stem: path.read_text() for path in paths} == expected
    assert {path.parent for path in paths} == {tmp_path / "pages"}
