"""The data that ships: it passes its check, covers what it promises, and mistakes no name."""

import tomllib
from pathlib import Path

import pytest

from probe_chipdb.chip import Chip
from probe_chipdb.database import Database
from probe_chipdb.tools.check import check

pytestmark = pytest.mark.heavy


DATA = Path(__file__).parents[1] / "data"
GIB = 2**30


@pytest.fixture(scope="module")
def result() -> object:
    return check(str(DATA))


def test_the_data_passes_its_check(result: object) -> None:
    assert [str(problem) for problem in result.problems] == []  # type: ignore[attr-defined]


def test_editors_find_the_schema_of_every_file() -> None:
    for path in DATA.rglob("*.toml"):
        kind = path.relative_to(DATA).parts[0]
        up = "../" * len(path.relative_to(DATA.parent).parts[:-1])
        first = path.read_text(encoding="utf-8").partition("\n")[0]
        assert first == f"#:schema {up}schema/{kind}.schema.json", path


def test_published_figures_are_met(result: object) -> None:
    within, compared = result.within, result.compared  # type: ignore[attr-defined]
    assert compared >= 200
    assert within / compared >= 0.95


def test_the_share_of_figures_that_were_read_only_rises(result: object) -> None:
    """Raise the first number with each document that is read; the last falls with it."""
    stated = result.stated  # type: ignore[attr-defined]
    assert stated["vendor"] >= 551
    assert stated["recalled"] <= 437


def test_coverage(real: Database) -> None:
    chips = real.chips()
    assert len(chips) >= 1300
    assert sum(bool(chip.peaks()) for chip in chips) >= 1000


def test_coverage_of_whole_entries(real: Database) -> None:
    """Units, clock and memory, hence peaks: size, or for unified memory type, bus or bandwidth."""

    def whole(chip: Chip) -> bool:
        clock, memory = chip.clock, chip.memory
        has_figures = (clock.boost or clock.base) and (memory.gib or memory.gbs or memory.bus)
        return bool(chip.units and has_figures and chip.peaks())

    assert sum(map(whole, real.chips())) >= 860


EXPECTED = [
    ("nvml", "NVIDIA GeForce RTX 4090", {}, "nvidia/geforce-rtx-4090"),
    ("nvml", "NVIDIA GeForce RTX 4090 Laptop GPU", {}, "nvidia/geforce-rtx-4090-laptop-gpu"),
    ("nvml", "NVIDIA GeForce RTX 4090 D", {}, "nvidia/geforce-rtx-4090-d"),
    ("nvml", "NVIDIA GeForce RTX 3080", {"memory": 10 * GIB}, "nvidia/geforce-rtx-3080-10gb"),
    ("nvml", "NVIDIA GeForce RTX 3080", {"memory": 12 * GIB}, "nvidia/geforce-rtx-3080-12gb"),
    ("nvml", "NVIDIA GeForce RTX 3080", {"units": 68}, "nvidia/geforce-rtx-3080-10gb"),
    ("nvml", "NVIDIA A100-SXM4-80GB", {}, "nvidia/a100-sxm4-80gb"),
    ("lspci", "GA100 [A100 SXM4 80GB]", {}, "nvidia/a100-sxm4-80gb"),
    ("nvml", "NVIDIA H100 80GB HBM3", {}, "nvidia/h100-sxm5-80gb"),
    ("lspci", "GH100 [H100 SXM5 80GB]", {}, "nvidia/h100-sxm5-80gb"),
    ("nvml", "Tesla V100-SXM2-16GB", {}, "nvidia/tesla-v100-sxm2-16gb"),
    ("amdgpu", "AMD Radeon RX 7900 XTX", {}, "amd/radeon-rx-7900-xtx"),
    ("vulkan", "AMD Radeon RX 7900 XTX (RADV NAVI31)", {}, "amd/radeon-rx-7900-xtx"),
    ("lspci", "Aqua Vanjaram [Instinct MI300X]", {}, "amd/instinct-mi300x"),
    ("windows", "Intel(R) UHD Graphics 620", {}, "intel/uhd-graphics-620"),
    ("gl", "Mesa Intel(R) UHD Graphics 620 (KBL GT2)", {}, "intel/uhd-graphics-620"),
    ("metal", "Apple M3 Max", {"units": 40}, "apple/m3-max-40c"),
    ("dt", "rockchip,rk3588-mali", {}, "arm/rk3588-mali-g610mp4"),
    ("pci", "10de:2684", {}, "nvidia/geforce-rtx-4090"),
]


@pytest.mark.parametrize(("kind", "name", "live", "id_"), EXPECTED)
def test_known_names(real: Database, kind: str, name: str, live: dict[str, int], id_: str) -> None:
    match = real.match(name=name, name_kind=kind, **live)  # type: ignore[arg-type]
    assert (match.chip.id if match.chip else None) == id_


@pytest.mark.parametrize(
    ("kind", "name", "least"),
    [
        ("lspci", "Navi 31 [Radeon RX 7900 XT/7900 XTX/7900M]", 3),
        ("nvml", "NVIDIA RTX 6000", 3),
        ("nvml", "NVIDIA GeForce RTX 3080", 2),
        ("windows", "Intel(R) Arc(TM) Graphics", 3),
        ("metal", "Apple M3 Max", 2),
    ],
)
def test_shared_names_are_ambiguous(real: Database, kind: str, name: str, least: int) -> None:
    match = real.match(name=name, name_kind=kind)
    assert match.chip is None
    assert len(match.candidates) >= least
    assert match.reason is not None
    assert match.reason.startswith("ambiguous: ")


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("nvml", "NVIDIA GeForce RTX 4090 Ti"),
        ("nvml", "NVIDIA GeForce RTX 4095"),
        ("nvml", "NVIDIA GeForce"),
        ("nvml", "NVIDIA Graphics Device"),
        ("nvml", "NVIDIA"),
        ("nvml", "GRID A100-7-40C"),
        ("nvml", "GRID V100D-8Q"),
        ("nvml", "NVIDIA A100-SXM4-40GB MIG 1g.5gb"),
        ("nvml", "NVIDIA L40S-48Q"),
        ("name", "AMD GeForce RTX 4090"),
        ("name", "GeForce RTX 4090 Radeon RX 7900 XTX"),
        ("amdgpu", "AMD Radeon Graphics"),
        ("amdgpu", "AMD Radeon RX 7900 XTXX"),
        ("windows", "AMD Radeon(TM) Graphics"),
        ("windows", "Microsoft Basic Display Adapter"),
        ("gl", "llvmpipe (LLVM 15.0.7, 256 bits)"),
        ("vulkan", "SwiftShader Device (LLVM 10.0.0)"),
        ("lspci", "ASPEED Technology, Inc. ASPEED Graphics Family"),
        ("lspci", "Matrox Electronics Systems Ltd. MGA G200EH"),
        ("metal", "Apple M99 Max"),
        ("metal", "Apple"),
        ("cpuinfo", "Intel(R) Core(TM) i7-8650U CPU @ 1.90GHz"),
        ("dt", "arm,mali"),
        ("name", "Mali"),
        ("name", "GPU"),
        ("name", "A"),
    ],
)
def test_unknown_names_stay_unknown(real: Database, kind: str, name: str) -> None:
    match = real.match(name=name, name_kind=kind)
    assert match.chip is None
    assert match.reason


def test_mfu(real: Database) -> None:
    """The denominator that training frameworks want: dense bf16 matrix, fp32 accumulate."""
    for id_, tflops in (
        ("nvidia/a100-sxm4-80gb", 312),
        ("nvidia/h100-sxm5-80gb", 989.4),
        ("nvidia/geforce-rtx-4090", 165.2),
        ("amd/instinct-mi300x", 1307.4),
    ):
        chip = real.chip(id_)
        assert chip is not None
        peak = chip.peak("bf16", accumulate="fp32")
        assert peak is not None
        assert peak.tflops == pytest.approx(tflops, rel=0.005)
        assert (peak.path, peak.sparsity) == ("matrix", "dense")


def test_every_figure_has_a_source_that_exists(real: Database) -> None:
    keys = {key for chip in real.chips() for key in chip.sources}
    keys |= {source for chip in real.chips() for _, source in chip.published.values()}
    keys |= {key for arch in real.archs() for key in arch.sources}
    assert {key for key in keys if real.source(key) is None} == set()


def test_every_key_finds_its_chip_again(real: Database) -> None:
    """Asked for one of its own keys, a chip is the answer or among the candidates."""
    for chip in real.chips():
        for pci in chip.pci:
            plain, _, qualifier = pci.partition("/")
            plain, _, revision = plain.partition("@")
            subsystem, _, revision2 = qualifier.partition("@")
            match = real.match(
                pci=plain, subsystem=subsystem or None, revision=revision or revision2 or None
            )
            assert match.chip == chip or chip in match.candidates, pci
        for name in (chip.name, *chip.aliases):
            match = real.match(name=name)
            answered = match.chip == chip or chip in match.candidates
            assert answered, (chip.id, name, match.reason)


def test_own_publishers_are_distributions_of_this_repository(real: Database) -> None:
    names = {
        tomllib.loads(file.read_text(encoding="utf-8"))["project"]["name"]
        for file in (DATA.parents[1] / "plugins").glob("*/pyproject.toml")
    }
    listed = tomllib.loads((DATA / "publishers/publishers.toml").read_text(encoding="utf-8"))
    own = {name for name in listed if name.startswith("probe-")}
    assert own
    assert own <= names
    assert real.ids("pub:probe-mali") == ("arm",)
