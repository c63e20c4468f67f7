"""Each spelling rule alone, beside the look-alike that it must not touch."""

import pytest

from probe_chipdb.database import Database
from probe_chipdb.name_form import Form, size_in
from probe_chipdb.name_lookup import chips_of_machine
from probe_chipdb.rules import built


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("rtx4090", "rtx 4090"),
        ("rtx_4090", "rtx 4090"),
        ("8x rtx 4090", "rtx 4090"),
        ("8xrtx4090", "rtx 4090"),
        ("2 x geforce rtx 4090", "geforce rtx 4090"),
        ("rtx4070tisuper", "rtx 4070 ti super"),
        ("rtx 4080s", "rtx 4080 super"),
        ("rtx 4070s ti", "rtx 4070 ti super"),
        ("rtx 4090 mobile", "rtx 4090 laptop gpu"),
        ("rtx 6000ada", "rtx 6000 ada generation"),
        ("rtx 4000 sff ada generation", "rtx 4000 ada sff"),
        ("rtx pro 6000 wk", "rtx pro 6000 blackwell workstation edition"),
        ("rtx pro 6000 max q", "rtx pro 6000 blackwell max q workstation edition"),
        ("a100 80gb sxm4", "a100 sxm4 80gb"),
        ("h100nvl", "h100 nvl"),
        ("uhd graphics 620", "uhd 620"),
        ("q rtx 8000", "quadro rtx 8000"),
        ("arca770", "arc a770"),
        ("gpu_8x_h100_sxm5", "h100 sxm5"),
        ("mac studio m3 ultra", "apple m3 ultra"),
    ],
)
def test_two_spellings_of_one_product(left: str, right: str) -> None:
    assert (Form(left).key, Form(left).brand) == (Form(right).key, Form(right).brand)
    assert Form(left).factor == Form(right).factor


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("rtx 4090", "rtx 4090 d"),
        ("rtx 4090", "rtx 4090 laptop gpu"),
        ("rtx 4070 ti", "rtx 4070 super"),
        ("rtx 6000 ada", "rtx 6000"),
        ("rtx pro 6000 server", "rtx pro 6000 workstation"),
        ("a100x", "a100 80gb x"),
        ("v100 sxm2 32gb ls", "v100ls"),
        ("rx 7600s", "rx 7600"),
        ("7900xtx", "7900xt"),
        ("s9300 x2", "s9300"),
        ("40 90", "4090 ti"),
    ],
)
def test_two_products_keep_two_forms(left: str, right: str) -> None:
    assert Form(left).key != Form(right).key


def test_facts_stand_beside_the_product() -> None:
    form = Form("8x nvidia h200 141gb hbm3e sxm")
    assert (form.base, form.vendor, form.size, form.type, form.factor) == (
        "h200",
        "nvidia",
        141.0,
        "hbm3e",
        "sxm",
    )
    assert Form("m4 max 40 core gpu").units == 40
    assert Form("rtx 3060, 12288 mib").size == 12.0


@pytest.mark.parametrize("text", ["gb", "12.5.1gb", "xgb", "1g.10gb", "٣gb", "123456789gb", "0gb"])
def test_no_size(text: str) -> None:
    assert size_in(text) is None


@pytest.mark.parametrize(
    ("base", "short"),
    [("rtxa6000", ["a6000"]), ("rxvega56", ["vega56"]), ("rx6800", []), ("gt710", ["710"]),
     ("rx7900xtx", ["7900xtx"]), ("h100", [])],
)  # fmt: skip
def test_series_that_people_leave_out(base: str, short: list[str]) -> None:
    assert [*built().every(base, "short")] == short


@pytest.mark.parametrize(
    ("key", "product"),
    [
        ("tpu v5litepod 8", "tpu v5e"),
        ("tpu v5 lite podslice", "tpu v5e"),
        ("v6e 256", "tpu v6e"),
        ("tpu7x 8", "tpu7x"),
        ("google tpu v7x", "tpu7x"),
        ("trn2u.48xlarge", "trainium2"),
        ("inf1", "inferentia"),
        ("v4", ""),
        ("v4 podslice", ""),
        ("v4 8 8", ""),
        ("tpu", ""),
        ("tpu v9 8", ""),
        ("trn2x", ""),
        ("", ""),
    ],
)
def test_cloud_types(key: str, product: str, real: Database) -> None:
    assert chips_of_machine(real, key) == (real.ids(f"n:{product}") if product else ())


def test_a_size_that_is_sold_fits_a_chip_of_no_known_size(real: Database) -> None:
    sizes = {size: real.match(name=f"Alibaba Hanguang 800 {size}GB").chip for size in range(1, 40)}
    assert [size for size, chip in sizes.items() if chip] == [
        *(1, 2, 3, 4, 5, 6, 8, 10, 11, 12, 16, 18, 20, 24, 32, 36),
    ]
