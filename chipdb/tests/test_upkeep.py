"""What keeps the data fresh: drivers' lists, notes of a release, other tables, what is missing."""

import shutil
from pathlib import Path

import pytest

from probe_chipdb.__main__ import _parser, main
from probe_chipdb.chip_peaks import REASONS
from probe_chipdb.database import Database
from probe_chipdb.tools import compare, diff, pages, stale
from probe_chipdb.tools.diff import open_data

COMPARE = Path(__file__).parents[1] / "compare"

SUPPORTED = """{"chips": [
 {"devid": "0x2684", "name": "NVIDIA GeForce RTX 4090"},
 {"devid": "0x2BB3", "subvendorid": "0x10DE", "subdeviceid": "0x227A",
  "name": "NVIDIA RTX PRO 5000 72GB Blackwell"},
 {"devid": "0x2684", "subvendorid": "0x10DE", "subdeviceid": "0x9999", "name": "NVIDIA New 9"},
 {"devid": "0x3FF1", "name": "NVIDIA New 1"}]}"""
RELEASED = """static const CHIPS_RELEASED sChipsReleased[] = {
    { 0x2684, 0x0000, 0x0000, "NVIDIA GeForce RTX 4090" },
    { 0x20B0, 0x1450, 0x10de, "NVIDIA A100-PG509-200" },
    { 0x3FF2, 0x0000, 0x0000, "NVIDIA New 2" },
"""
AMDGPU = "# version\n744C,\tC8,\tAMD Radeon RX 7900 XTX\n7FFF,\t1,\tAMD New 3\n"
PCI_IDS = """\n10de  NVIDIA Corporation
\t2684  AD102 [GeForce RTX 4090]
\t22ba  AD102 High Definition Audio Controller
\t3ff4  GX100 [GeForce New 4]
1002  Advanced Micro Devices, Inc. [AMD/ATI]
\t7ffe  Navi 99 [Radeon New 5]
8086  Intel Corporation
\t0000  Ethernet Controller
"""
INTEL = """#define INTEL_TGL_IDS(MACRO__, ...) \\
\tMACRO__(0x9A49, ## __VA_ARGS__)
#define INTEL_ZZZ_IDS(MACRO__, ...) \\
\tMACRO__(0xFFF6, ## __VA_ARGS__)
"""
FREEDRENO = """add_gpus([
  GPUId(chip_id=0x43050c01, name="Adreno X1-85"),
  GPUId(chip_id=0xffff4f050c01, name="FD999"),
])"""
MALI = """product_entry { 0xa007, MASK_NEW, 1, "Mali-G610", "Valhall", x },
product_entry { 0xf00d, MASK_NEW, 1, "Mali-New", "Next", x },"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SUPPORTED, ["pci 10de:2684/10de:9999: NVIDIA New 9", "pci 10de:3ff1: NVIDIA New 1"]),
        (RELEASED, ["pci 10de:3ff2: NVIDIA New 2"]),
        (AMDGPU, ["pci 1002:7fff@01: AMD New 3"]),
        (
            PCI_IDS,
            ["pci 10de:3ff4: GX100 [GeForce New 4]", "pci 1002:7ffe: Navi 99 [Radeon New 5]"],
        ),
        ("sm_90 sm_130 gfx942 gfx1399",
         ["gfx gfx1399: gfx1399", "compute capability 13.0: sm_130"]),
        (SUPPORTED.replace('{"devid": "0x3FF1"', '{"devid": "zz"}, 3, {"devid": "0x3FF1"'),
         ["pci 10de:2684/10de:9999: NVIDIA New 9", "pci 10de:3ff1: NVIDIA New 1"]),
        (INTEL, ["pci 8086:fff6: Intel Graphics (ZZZ)"]),
        (FREEDRENO, ["gpu_id qualcomm:0x4f050c01: FD999"]),
        (MALI, ["gpu_id arm:0xf00d/0xf00f: Mali-New"]),
        ("gfx942, gfx1250 and gfx1399", ["gfx gfx1399: gfx1399"]),
        ("p5.48xlarge p9.48xlarge BM.GPU.H100.8 Standard_ND96isr_H200_v5 Standard_NC1_ZZ_v9",
         ["machine Standard_NC1_ZZ_v9: Standard_NC1_ZZ_v9", "machine p9.48xlarge: p9.48xlarge"]),
        ("sm_90\nsm_107a\nsm_999", ["compute capability 99.9: sm_999"]),
    ],
)  # fmt: skip
def test_what_is_newer_than_the_table(real: Database, text: str, expected: list[str]) -> None:
    assert stale.newer(real, text) == expected


@pytest.mark.parametrize("text", ["", "hello", '{"chips": [{"devid": 5}]}', '{"devid"', "\0" * 99])
def test_another_text_is_no_list(text: str) -> None:
    assert stale.read_list(text) is None


def test_since_is_a_date(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pci.ids").write_text("")
    with pytest.raises(SystemExit):
        main(["stale", str(tmp_path / "pci.ids"), "--since", "last month"])
    assert "'last month' is no date; write YYYY-MM-DD" in capsys.readouterr().err


def test_command_stale(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "list.json").write_text(SUPPORTED)
    (tmp_path / "other").write_text("hello")
    assert main(["stale", str(tmp_path / "list.json"), str(tmp_path / "other")]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "list.json: 4 entries, 2 not in the table"
    assert lines[3] == "other: no list of a known form; docs/format.md names the forms"
    assert lines[-1].startswith("2 entries are newer than chipdb ")
    assert main(["stale", str(tmp_path / "none")]) == 2


PCI_IDS = """\
# a list of ids
10de  NVIDIA Corporation
\t0045  NV40 [GeForce 6800 GTX]
\t26fe  AD102 [GeForce RTX 4090 Ti]
\t22ff  AD102 High Definition Audio Controller
8086  Intel Corporation
\tfff1  Future Lake NPU
\tfff2  Future Lake [Intel Graphics]
"""


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ([], ["NV40 [GeForce 6800 GTX]", "AD102 [GeForce RTX 4090 Ti]", "NPU", "Graphics]"]),
        (["--since", "2022"], ["AD102 [GeForce RTX 4090 Ti]", "NPU", "Graphics]"]),
        (["--since", "2022-03-01"], ["AD102 [GeForce RTX 4090 Ti]", "NPU", "Graphics]"]),
        (["--since", "2022", "--kind", "gpu"], ["AD102 [GeForce RTX 4090 Ti]", "Graphics]"]),
        (["--kind", "npu"], ["NPU"]),
        (["--since", "2035"], []),
    ],
)
def test_stale_leaves_out_what_is_old_or_of_another_kind(
    options: list[str], names: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pci.ids").write_text(PCI_IDS)
    assert main(["stale", str(tmp_path / "pci.ids"), *options]) == int(bool(names))
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert len(lines) == len(names), lines
    assert all(line.endswith(name) for line, name in zip(lines, names, strict=True)), lines


def test_the_worklist_names_each_document_with_its_figures(real: Database) -> None:
    page = list(pages.unread_page(real))
    assert page[0] == "# Figures that wait for a reader"
    boxes = [line for line in page if line.startswith("- [ ] ")]
    assert page[2].startswith(f"{len(boxes)} figures in ")
    assert any("`nvidia/h100-sxm5-80gb`" in line or "`nvidia/" in line for line in boxes)
    # What was read waits for nobody.
    assert not any("(`amd/instinct-mi300x`, 2023): dense fp16.matrix.fp32" in box for box in boxes)


@pytest.mark.parametrize(
    ("previous", "month", "version"),
    [("2026.11.0", 11, "2026.11.1"), ("2026.11.9", 12, "2026.12.0"), ("", 1, "2026.1.0")],
)
def test_the_next_version(previous: str, month: int, version: str) -> None:
    assert diff.next_version(previous, 2026, month) == version


def test_notes_by_the_command(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = data / "chips/acme/fast.toml"
    old = tmp_path / "old"
    shutil.copytree(data, old)
    path.write_text(path.read_text().replace("boost = 2000", "boost = 1900"))
    assert main(["notes", str(old), str(data), "--version", "2026.12.0"]) == 0
    assert capsys.readouterr().out.startswith("## 2026.12.0\n")


def test_every_command_has_what_it_runs() -> None:
    (commands,) = (action for action in _parser()._actions if isinstance(action.choices, dict))
    silent = [name for name, own in commands.choices.items() if own.get_default("run") is None]
    assert silent == []


def test_notes_of_a_release(data: Path, tmp_path: Path) -> None:
    old = open_data(str(data))
    path = data / "chips/acme/fast.toml"
    before = old.chips()
    text = path.read_text().replace("units = 90\npci", "units = 90\nclock = { boost = 900 }\npci")
    memory = "}\nmemory = { gib = 8"
    path.write_text(text.replace(f"boost = 2000 {memory}", f"boost = 1900 {memory}"))
    lines = list(diff.release(old, open_data(str(data)), "2026.12.0"))
    assert lines[0] == "## 2026.12.0"
    chips = len(before)
    assert lines[2] == f"- {chips} chips, 7 with figures (before: {chips} chips, 6 with figures)."
    assert "- Figures now known, acme (1): Acme Fast OEM." in lines
    assert "- Figures corrected, acme (1): Acme Fast 1." in lines
    assert any(line.startswith("### Changed (2)") for line in lines)


def test_every_entry_of_other_tables_agrees_or_is_explained(real: Database) -> None:
    assert compare.unexplained(real, str(COMPARE)) == []


def test_an_entry_that_differs_is_named(real: Database, tmp_path: Path) -> None:
    head = (
        '[table]\ntitle = "T"\nversion = "1"\nref = "r"\nlicence = "MIT"\n'
        'rate = "bf16.matrix.fp32"\nabout = "A table."\n'
    )
    rows = (
        '[[entry]]\nkey = "wrong"\ntflops = 400\nchip = ["nvidia/l4"]\n'
        '[[entry]]\nkey = "sparse"\ntflops = 242\nchip = ["nvidia/l4"]\n'
        '[[entry]]\nkey = "board"\ntflops = 383\nchip = ["amd/instinct-mi250x"]\n'
        '[[entry]]\nkey = "laptop"\ntflops = 70\nchip = ["nvidia/geforce-rtx-4090-laptop-gpu"]\n'
    )
    (tmp_path / "t.toml").write_text(head + rows)
    assert compare.unexplained(real, str(tmp_path)) == ["T: wrong"]
    page = "\n".join(compare.compare_page(real, str(tmp_path)))
    assert "4 entries, compared as `bf16.matrix.fp32`: 0 agrees, 3 explained, 1 differs." in page
    assert "our bf16.matrix.fp32 sparse: `nvidia/l4`" in page
    assert "of the board with its 2 devices: `amd/instinct-mi250x`" in page
    assert "inside the range that the part is sold with" in page
    assert main(["compare", str(tmp_path)]) == 1


def test_each_chip_without_figures_has_a_reason(real: Database) -> None:
    for chip in pages.figureless(real):
        sentence = chip.why_no_peaks() or ""
        assert sentence.rpartition(": ")[2] in REASONS.values(), chip.id


OLDER = ("fermi", "kepler", "maxwell", "pascal", "volta")


def test_few_nvidia_entries_since_turing_lack_figures(real: Database) -> None:
    """Samples, boards that were never sold and the entries of SoCs count, virtual GPUs do not."""
    lacking = {
        chip.id: pages.is_product(chip)
        for chip in pages.figureless(real)
        if chip.vendor == "nvidia"
        and chip.unknown != "vgpu"
        and (chip.arch or "").partition("-")[0] not in OLDER
    }
    assert len(lacking) <= 40  # PG506-230 and -232 are two entries
    assert sum(lacking.values()) <= 36


MEASURED = [  # id, SM, fp32 TFLOPS as units and clock of the driver give it
    ("nvidia/a100-sxm-64gb", 124, 22.14),
    ("nvidia/a100-pg509-200", 108, 19.49),
    ("nvidia/pg509-210", 108, 19.49),
    ("nvidia/geforce-rtx-3050-4gb-laptop-gpu", 20, 6.18),
]


@pytest.mark.parametrize(("id_", "units", "tflops"), MEASURED)
def test_figures_of_boards_without_a_data_sheet(
    real: Database, id_: str, units: int, tflops: float
) -> None:
    chip = real.chip(id_)
    assert chip is not None
    peak = chip.peak("fp32", path="vector")
    assert peak is not None
    assert (chip.units, peak.confidence) == (units, "measured")
    assert peak.tflops == pytest.approx(tflops, abs=0.01)


def test_a_count_without_a_clock_gives_no_figure(real: Database) -> None:
    chip = real.chip("nvidia/pg506-232")
    assert chip is not None
    assert chip.peaks() == ()
    (peak,) = [p for p in chip.peaks(clock_mhz=1000) if p.rate == "fp32.vector.fp32"]
    assert peak.tflops == pytest.approx(124 * 128 * 1000 / 1e6)


def test_a_throttled_card_has_what_was_measured_and_nothing_derived(real: Database) -> None:
    """The firmware of CMP cards holds fp32 to one in 32, so a rate times a clock is wrong."""
    chip = real.chip("nvidia/cmp-50hx")
    assert chip is not None
    peaks = {peak.rate: peak.tflops for peak in chip.peaks(units=56, max_mhz=1545)}
    assert peaks == {
        "fp32.vector.fp32": 0.427, "fp16.vector.fp16": 26.9, "fp64.vector.fp64": 0.423,
    }  # fmt: skip


@pytest.mark.heavy
def test_the_page_of_what_is_missing(real: Database) -> None:
    page = list(pages.missing_page(real))
    assert sum(line.startswith("| ") and "<br>`" in line for line in page) == len(
        pages.figureless(real)
    )
    assert any("`nvidia/a10-vgpu`" in line and "a share of a card" in line for line in page)


NEW = [  # id, rate, sparsity, published dense or sparse figure
    ("nvidia/vr200", "fp64.vector.fp64", "dense", 33),
    ("nvidia/vr200", "bf16.matrix.fp32", "dense", 4000),
    ("nvidia/vr200", "fp4.matrix.fp32", "dense", 35000),
    ("amd/instinct-mi455x", "bf16.matrix.fp32", "dense", 5033),
    ("amd/instinct-mi455x", "bf16.matrix.fp32", "sparse", 10066),
    ("amd/instinct-mi455x", "fp8.matrix.fp32", "dense", 20133),
    ("amd/instinct-mi455x", "fp4.matrix.fp32", "dense", 40265),
    ("amd/instinct-mi350p", "fp4.matrix.fp32", "dense", 4614),
    ("amd/instinct-mi430x", "fp64.matrix.fp64", "dense", 288),
    ("google/tpu-8t", "fp4.matrix.fp32", "dense", 12600),
    ("nvidia/jetson-t4000", "fp4.matrix.fp32", "sparse", 1200),
    ("nvidia/jetson-t3000", "fp4.matrix.fp32", "sparse", 865),
    ("nvidia/jetson-t2000", "fp4.matrix.fp32", "sparse", 400),
    ("nvidia/igx-t5000", "fp4.matrix.fp32", "sparse", 2070),
]


@pytest.mark.parametrize(("id_", "rate", "sparsity", "tflops"), NEW)
def test_new_silicon(real: Database, id_: str, rate: str, sparsity: str, tflops: float) -> None:
    chip = real.chip(id_)
    assert chip is not None
    (peak,) = [p for p in chip.peaks() if (p.rate, p.sparsity) == (rate, sparsity)]
    assert peak.tflops == pytest.approx(tflops, rel=0.03)


def test_fp8_of_cdna_5_has_no_sparse_figure(real: Database) -> None:
    chip = real.chip("amd/instinct-mi455x")
    assert chip is not None
    assert {p.rate for p in chip.peaks() if p.sparsity == "sparse"} == {
        "bf16.matrix.fp32", "fp16.matrix.fp32", "int8.matrix.int32",
    }  # fmt: skip


@pytest.mark.parametrize(
    "id_",
    ["nvidia/rubin-cpx", "amd/instinct-mi440x", "apple/m5-ultra-80c", "qualcomm/ai250",
     "intel/data-center-gpu-crescent-island", "microsoft/maia-200",
     "nvidia/jetson-orin-nano-2"],
)  # fmt: skip
def test_what_is_not_published_is_not_there(real: Database, id_: str) -> None:
    chip = real.chip(id_)
    assert chip is not None
    assert chip.peaks() == ()
    assert chip.why_no_peaks()


@pytest.mark.parametrize(
    ("facts", "arch"),
    [({"compute_capability": "10.7"}, "rubin"), ({"gfx": "gfx1250"}, "cdna5"),
     ({"gfx": "gfx1251"}, "cdna5-hpc")],
)  # fmt: skip
def test_a_new_architecture_answers(real: Database, facts: dict[str, str], arch: str) -> None:
    found, why = real.arch_for(**facts)  # type: ignore[arg-type]
    assert found is not None
    assert found.id == arch
    assert why
    # Rubin's published figures need a clock each, so that nothing derives from its capability.
    peaks = real.derive(arch, units=200, clock_mhz=2000)
    assert bool(peaks) == (arch != "rubin")
