"""The peak in one call: the figure of MFU, from whatever a program holds; nothing raises."""

from pathlib import Path

import pytest

import probe_chipdb
from probe_chipdb import shortcuts
from probe_chipdb.database import Database
from probe_chipdb.shortcuts import dtype_of

GIB = 2**30


def tflops(*arguments: object, **facts: object) -> float | None:
    figure = probe_chipdb.peak(*arguments, **facts)  # type: ignore[arg-type]
    return None if figure is None else round(figure.tflops, 1)


@pytest.mark.parametrize(
    ("name", "dtype", "facts", "expected"),
    [
        ("NVIDIA H100 80GB HBM3", "bf16", {"capability": "9.0", "memory": 85_000_000_000}, 989.4),
        ("NVIDIA L40S", "bf16", {}, 366.4),
        ("NVIDIA L4", "bf16", {}, 121.2),
        ("NVIDIA L4", "bf16", {"clock_mhz": 100}, 121.2),  # it has a clock of its own
        ("NVIDIA H200 NVL", "bf16", {}, 835.3),
        ("NVIDIA GeForce RTX 5090", "torch.bfloat16", {}, 209.5),
        ("8x H100-SXM-80GB HBM3", "bf16", {}, 989.4),
        ("NVIDIA GeForce RTX 4090", "float16", {"accumulate": "fp16"}, 330.3),
        ("NVIDIA GeForce RTX 4090", "bf16", {"sparse": True}, 330.3),
        ("NVIDIA GeForce RTX 4090", "fp32", {}, 82.6),
        ("Tesla P100-SXM2-16GB", "half", {}, 21.2),
        ("AMD Instinct MI250X", "bf16", {}, 191.5),
        ("AMD Instinct MI250X", "bf16", {"per": "package"}, 383.0),
        ("TPU v7x", "bf16", {}, 1153.5),
        ("TPU v7x", "bf16", {"per": "package"}, 2307.0),
        ("gfx942:sramecc+:xnack-", "bf16", {"gfx": "gfx942", "units": 304}, 1307.4),
        (None, "bf16", {"pci": "10DE:2684"}, 165.2),
        (b"Tesla T4", "fp16", {"units": 40}, 65.1),
        ("NVIDIA GeForce RTX 3060 Ti", "bf16", {}, 32.4),
    ],
)
def test_figures(name: object, dtype: str, facts: dict[str, object], expected: float) -> None:
    assert tflops(name, dtype, **facts) == pytest.approx(expected, abs=0.11)
    assert probe_chipdb.why(name, dtype, **facts) == ""  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "dtype", "facts", "reason"),
    [
        ("NVIDIA GeForce RTX 4095", "bf16", {}, "no chip is named"),
        ("NVIDIA A100", "bf16", {}, "ambiguous"),
        ("NVIDIA L40S-SHARED", "bf16", {}, "a share of a card"),
        ("llvmpipe (LLVM 19, 256 bits)", "bf16", {}, "renderer in software"),
        ("NVIDIA GeForce RTX 4090", "complex64", {}, "no data type"),
        ("NVIDIA GeForce RTX 4090", "fp4", {}, "no dense fp4 path"),
        ("NVIDIA GeForce RTX 4090", "fp32", {"path": "matrix"}, "no dense fp32 path"),
        ("Kunlun P800", "bf16", {"capability": "8.6", "units": 64, "clock_mhz": 1500}, "kunlun"),
        (None, "bf16", {}, "no name and no id"),
        (12, "bf16", {}, "no name and no id"),
    ],
)
def test_an_unknown_figure_is_none_with_a_reason(
    name: object, dtype: str, facts: dict[str, object], reason: str
) -> None:
    assert probe_chipdb.peak(name, dtype, **facts) is None  # type: ignore[arg-type]
    assert reason in probe_chipdb.why(name, dtype, **facts)  # type: ignore[arg-type]


def test_a_laptop_answers_the_top_of_its_range_and_the_bottom_as_low() -> None:
    figure = probe_chipdb.peak("NVIDIA GeForce RTX 5090 Laptop GPU")
    assert figure is not None
    assert figure.low is not None
    # As NVIDIA's AI TOPS have it: 97 were measured, above what the listed boost clock gives.
    assert (round(figure.low, 1), round(figure.tflops, 1)) == (41.6, 114.0)
    assert figure.per == "device"


def test_every_figure_names_its_source() -> None:
    figure = probe_chipdb.peak("AMD Instinct MI250X", per="package")
    assert figure is not None
    assert figure.source.endswith("; x 2 per package")
    assert figure.per == "package"


@pytest.mark.parametrize(
    ("name", "memory", "expected"),
    [
        ("AMD Instinct MI300X", 206_141_652_992, 5_300),
        ("gfx942", 206_141_652_992, 5_300),
        ("gfx942", 274_861_129_728, 6_000),
        ("NVIDIA H100 SXM", 80 * GIB, 3_350),
        ("NVIDIA A800 SXM4", 80 * GIB, 2_039),
    ],
)
def test_memory_above_64_gib_tells_products_apart(name: str, memory: int, expected: int) -> None:
    facts = {"gfx": "gfx942", "units": 304} if name == "gfx942" else {}
    figure = probe_chipdb.bandwidth(name, memory=memory, **facts)
    assert figure is not None
    assert round(figure / 1e9) == expected


def test_an_unknown_chip_of_a_known_architecture_needs_units_and_a_clock() -> None:
    facts = {"capability": (8, 9), "units": 100}
    name = "NVIDIA GeForce RTX 4095"
    assert probe_chipdb.peak(name, **facts) is None  # type: ignore[arg-type]
    figure = probe_chipdb.peak(name, clock_mhz=2500, **facts)  # type: ignore[arg-type]
    assert figure is not None
    assert (round(figure.tflops), figure.clock, figure.confidence) == (128, "given", "derived")


IGNORED = (None, 121.2)
ADA = (128.0, 121.2)


@pytest.mark.parametrize(
    ("capability", "expected"),
    [
        *[(ada, ADA) for ada in ("8.9", (8, 9), [8, 9], 8.9, "sm_89", "SM_89", "compute_89")],
        *[(blackwell, (128.0, None)) for blackwell in ("12.0", (12, 0), "120", "sm_120f")],
        ("sm_90a", (1024.0, None)),
        ("103", (2048.0, None)),
        *[(unknown, (None, None)) for unknown in ("8.99", "12.10", (0, 9), (99, 0))],
        *[(bad, IGNORED) for bad in ("8", "8.", ".9", "8_9", "x.9", "8.x", "1234", "12.100")],
        *[(bad, IGNORED) for bad in ("٨.9", "8.٩", "٨٩")],
        *[(bad, IGNORED) for bad in ((8,), (8, 9, 0), (100, 0), (8, 100), (-1, 9), (8, True))],
    ],
)
def test_a_capability_is_read_as_programs_write_it(
    capability: object, expected: tuple[float | None, float | None]
) -> None:
    """It names the architecture of a chip that no table has, and refutes another chip's name."""
    facts = {"capability": capability, "units": 100, "clock_mhz": 2500}
    unknown = tflops("NVIDIA GeForce RTX 4095", "bf16", **facts)
    assert (unknown, tflops("NVIDIA L4", "bf16", capability=capability)) == expected


@pytest.mark.parametrize(
    ("units", "clock_mhz", "expected"),
    [
        (1, 1000, 0.5),
        (0, 1000, None),
        (10**6, 2500, 1_280_000.0),
        (10**6 + 1, 2500, None),
        (100, 10**5, 5120.0),
        (100, 10**5 + 1, None),
        (100, 0, None),
    ],
)
def test_a_count_has_bounds(units: int, clock_mhz: int, expected: float | None) -> None:
    facts = {"capability": "8.9", "units": units, "clock_mhz": clock_mhz}
    assert tflops("NVIDIA GeForce RTX 4095", "bf16", **facts) == expected


def test_a_memory_that_no_device_has_is_not_read() -> None:
    assert probe_chipdb.memory("NVIDIA L4", memory=2**60) is None
    assert probe_chipdb.memory("NVIDIA L4", memory=2**60 + 1) == 24 * GIB


def test_catalogues() -> None:
    assert probe_chipdb.canonical("H200 141GB HBM3") == ("nvidia/h200-sxm5-141gb",)
    assert probe_chipdb.canonical("A100 PCIe") == (
        "nvidia/a100-80gb-pcie",
        "nvidia/a100-pcie-40gb",
    )
    assert probe_chipdb.canonical("RTX 4090 Ti") == ()
    assert probe_chipdb.memory("A100 80GB") == 80 * GIB
    assert probe_chipdb.memory("A100") is None
    assert probe_chipdb.memory("MI250X", per="package") == 128 * GIB
    assert probe_chipdb.bandwidth("RTX 5090") == 1_792_000_000_000
    assert probe_chipdb.bandwidth("A100 80GB") is None  # PCIe and SXM differ


def test_a_database_of_ones_own(db: Database) -> None:
    figure = probe_chipdb.peak("Acme Fast 1", "fp16", memory=16 * GIB, database=db)
    assert figure is not None
    assert round(figure.tflops, 1) == 102.4


class Broken:
    def __str__(self) -> str:
        raise RuntimeError("not to be printed")

    def __int__(self) -> int:
        raise RuntimeError("no number")

    def __bool__(self) -> bool:
        raise RuntimeError("neither")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("incomparable")

    __hash__ = None  # type: ignore[assignment]


BAD = [
    None, "", " ", "\0", "\ud800", "٣" * 40, "a" * 1_000_000, "(" * 100_000, "9" * 100_000, b"\xff",
    -1, 0, 10**5000, 1e400, float("nan"), True, [], {}, (1, 2, 3), object(), Broken(),
]  # fmt: skip


@pytest.mark.parametrize("bad", BAD, ids=lambda value: str(type(value).__name__))
def test_nothing_that_a_caller_may_give_raises(bad: object) -> None:
    for field in (
        "capability", "memory", "units", "gfx", "pci", "subsystem", "revision", "clock_mhz",
        "database", "nonsense",
    ):  # fmt: skip
        assert tflops("NVIDIA L4", "bf16", **{field: bad}) in (121.2, None)
        probe_chipdb.peak(None, "bf16", **{"pci": "10de:2684", field: bad})  # type: ignore[arg-type]
    assert probe_chipdb.peak(bad) is None
    assert probe_chipdb.why(bad)
    assert probe_chipdb.peak("NVIDIA L4", bad) is None
    assert probe_chipdb.canonical(bad) == ()
    assert probe_chipdb.memory(bad) is None
    assert probe_chipdb.bandwidth(bad) is None


def test_data_types_by_the_names_of_frameworks() -> None:
    names = ("torch.float8_e4m3fn", "BF16", "<class 'ml.bfloat16'>")
    assert [dtype_of(name) for name in names] == ["fp8", "bf16", "bf16"]
    assert dtype_of(Broken()) == ""


@pytest.mark.parametrize("bad", BAD, ids=lambda value: str(type(value).__name__))
def test_a_bad_option_is_no_figure(bad: object) -> None:
    for option in ("path", "accumulate", "per", "sparse"):
        facts = {option: bad}
        figure = probe_chipdb.peak("NVIDIA L4", "bf16", **facts)  # type: ignore[arg-type]
        reason = probe_chipdb.why("NVIDIA L4", "bf16", **facts)  # type: ignore[arg-type]
        assert bool(figure) != bool(reason)


def test_a_memory_that_is_another_is_no_memory_of_the_product() -> None:
    assert probe_chipdb.memory("NVIDIA GeForce RTX 4090", memory=25_757_220_864) == 24 * GIB
    assert probe_chipdb.memory("NVIDIA GeForce RTX 4090", memory=48 * GIB) is None
    assert probe_chipdb.why("NVIDIA GeForce RTX 4090", memory=25_757_220_864) == ""
    assert probe_chipdb.why("NVIDIA GeForce RTX 4090", memory=48 * GIB) == (
        "nvidia/geforce-rtx-4090: the driver reports 48.0 GiB of memory, the product has 24"
    )


def test_installed_packages_of_vendors_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`probe chip` knew their chips while the one call did not."""
    package = tmp_path / "acme_chips"
    package.mkdir()
    (package / "chips.toml").write_text(
        '[family]\ntitle = "Acme"\nvendor = "acme"\nsource = ["sheet"]\n'
        '[source.sheet]\ntitle = "t"\npublisher = "Acme"\nref = "r"\nstatus = "cited"\n'
        '[[chip]]\nid = "acme/sixteen"\nname = "Acme Sixteen"\nmemory = { gib = 16 }\n'
        'override = [{ rate = "bf16.matrix.fp32", tflops = 16, reason = "r", source = "sheet" }]\n'
    )
    metadata = tmp_path / "acme_chips-1.0.dist-info"
    metadata.mkdir()
    (metadata / "entry_points.txt").write_text("[probe_core.chipdb.v1]\nacme = acme_chips\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(shortcuts, "_own", {})
    assert probe_chipdb.canonical("Acme Sixteen") == ("acme/sixteen",)
    assert probe_chipdb.memory("Acme Sixteen") == 16 * GIB
    figure = probe_chipdb.peak("Acme Sixteen")
    assert figure is not None
    assert (figure.tflops, figure.confidence) == (16, "recalled")
    assert probe_chipdb.canonical("Acme Sixteen", packages=False) == ()
    assert probe_chipdb.why("Acme Sixteen", packages=False) == "no chip is named 'Acme Sixteen'"
