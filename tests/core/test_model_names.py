"""Ids, names and amounts at their bounds: one case for each side of every limit."""

from __future__ import annotations

from typing import Any

import pytest

from probe_core.likeness import closest, did_you_mean, suggestion
from probe_core.model.ids import (
    NO_PLACE,
    driver_text,
    fits_kind,
    is_code,
    is_device_id,
    is_distribution_name,
    is_passthrough_driver,
    is_prober_name,
    normalise_id,
    pci_address,
    pci_fact,
    pci_place,
    pci_product,
    pci_vendor,
    single,
    strength,
    whole,
)
from probe_core.model.naming import (
    answers_to,
    cores,
    named_by,
    short_id,
    short_ids,
    short_name,
    title,
)
from probe_core.model.runtimes import NATIVE, canonical, in_runtime_order
from probe_core.sizes import format_size, gib, parse_size
from probe_core.wording import clean_text, counted, error_text, joined


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pci:0000:01:00.0", "pci:0000:01:00.0"),
        ("PCI:0000:01:00.0", "pci:0000:01:00.0"),
        ("pci:01:00.0", "pci:0000:01:00.0"),
        ("pci:0000000F:0A:1f.7", "pci:000f:0a:1f.7"),
        ("pci:00010000:ff:00.0", "pci:10000:ff:00.0"),
        ("pci:ffffffff:01:00.0", "pci:ffffffff:01:00.0"),
        ("pci:0000:01:10.0", "pci:0000:01:10.0"),
        ("uuid:gpu-ABCD-EF", "uuid:GPU-abcd-ef"),
        ("uuid:npu-AB", "uuid:NPU-ab"),
        ("uuid:mig-GPU-AB/7/0", "uuid:MIG-GPU-AB/7/0"),
        ("uuid:ABCD", "uuid:ABCD"),
        ("UUID:xyz-AB", "uuid:xyz-AB"),
        ("Acme:A", "acme:A"),
        ("a:" + "b" * 254, "a:" + "b" * 254),
    ],
)
def test_the_one_form_of_an_id(text: str, expected: str) -> None:
    assert normalise_id(text) == expected
    assert normalise_id(expected) == expected


NO_ADDRESS = " is no PCI address (dddd:bb:dd.f)"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("pci:100000000:01:00.0", f"'100000000:01:00.0'{NO_ADDRESS}"),
        ("pci:0000:100:00.0", f"'0000:100:00.0'{NO_ADDRESS}"),
        ("pci:0000:01:20.0", f"'0000:01:20.0'{NO_ADDRESS}"),
        ("pci:0000:01:00.8", f"'0000:01:00.8'{NO_ADDRESS}"),
        ("pci:0000:01:00", f"'0000:01:00'{NO_ADDRESS}"),
        ("pci:+000:01:00.0", f"'+000:01:00.0'{NO_ADDRESS}"),
        ("pci:0_00:01:00.0", f"'0_00:01:00.0'{NO_ADDRESS}"),
        ("pci:" + "1" * 61, f"'{'1' * 60}'{NO_ADDRESS}"),
        (f"pci:{'0' * 60}:20:00.9", f"'{'0' * 60}'{NO_ADDRESS}"),
        ("acme", "the id 'acme' is not `kind:value` of at most 256 characters"),
        ("acme: ", "the id 'acme: ' is not `kind:value` of at most 256 characters"),
        ("a:" + "b" * 255, f"the id 'a:{'b' * 58}' is not `kind:value` of at most 256 characters"),
        (f"a: {'b' * 99}", f"the id 'a: {'b' * 57}' holds characters other than printable ASCII"),
        ("a:b c", "the id 'a:b c' holds characters other than printable ASCII"),
        ("a:\xe9", "the id 'a:\xe9' holds characters other than printable ASCII"),
        ("a:\x1b", "the id 'a:\\x1b' holds characters other than printable ASCII"),
    ],
)
def test_what_is_no_id(text: str, problem: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        normalise_id(text)
    assert str(raised.value) == problem


def test_an_address_names_a_device_first_and_a_probers_own_id_last() -> None:
    ids = ["acme:0", "uuid:GPU-1", "dt:/soc", "pci:0000:02:00.0", "pci:0000:01:00.0", "cpu:0"]
    assert sorted(ids, key=strength) == [
        "cpu:0", "pci:0000:01:00.0", "pci:0000:02:00.0", "dt:/soc", "uuid:GPU-1", "acme:0"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("identity", "only", "kinds"),
    [
        ("pci:0000:01:00.0", "pci", "gpu"),
        ("uuid:GPU-1", "uuid", "gpu"),
        ("uuid:1", None, "gpu cpu"),
        ("uuid:CPU-1", "uuid", "cpu"),
        ("cpu:0", None, "cpu"),
        ("dt:/soc", None, "gpu cpu"),
    ],
)
def test_which_kinds_an_id_fits(identity: str, only: str | None, kinds: str) -> None:
    assert single(identity) == only
    assert [kind for kind in ("gpu", "cpu") if fits_kind(identity, kind)] == kinds.split()


def test_names_that_other_programs_may_read() -> None:
    assert [is_prober_name("a" * count) for count in (0, 1, 64, 65)] == [False, True, True, False]
    assert [is_distribution_name("a" * count) for count in (128, 129)] == [True, False]
    assert [is_code("a" * count) for count in (60, 61)] == [True, False]
    words = ["a-b", "_a", "-a", ".a", "a b", "a$", "a/b", "\xe9", "A.9"]
    assert [is_prober_name(word) for word in words] == [
        True, True, False, False, False, False, False, False, True
    ]  # fmt: skip
    ids = ["a:b", "a:", ":b", "ab", "a-b:c", "dt:/soc/gpu@fb+1", "a:b,c", "a:" + "b" * 254]
    assert [is_device_id(text) for text in [*ids, "a:" + "b" * 255]] == [
        True, False, False, False, False, True, False, True, False
    ]  # fmt: skip


def device(**fields: Any) -> Any:
    known = {
        **{"id": "acme:0", "ids": ["acme:0"], "kind": "gpu", "vendor": "acme", "name": "Card"},
        **{"chip": {"candidates": []}, "pci": None, "driver": None, "parent": None},
    }
    return {**known, **fields}


def test_where_a_device_says_that_it_is() -> None:
    named = device(id="uuid:GPU-1", ids=["uuid:GPU-1", "pci:0001:02:03.4"])
    assert (pci_address(named), pci_place(named)) == ("0001:02:03.4", (1, 2, 3, 4))
    assert pci_place(device(id="pci:10000:ff:1f.7", ids=[])) == (0x10000, 255, 31, 7)
    assert (pci_address(device()), pci_place(device())) == (None, None)
    assert pci_place(device(ids=["pci:odd", "pci:0000:01:00.0"])) == (0, 1, 0, 0)
    for odd in ("pci:000g:01:00.0", "pci:0000:0g:00.0", "pci:0000:01:0g.0", "pci:0000:01:00.g"):
        assert pci_place(device(ids=[odd])) is None
    assert NO_PLACE > (0xFFFFFFFF, 255, 31, 7)


def test_facts_of_the_bus_and_the_driver() -> None:
    pci = {"id": "10de:2684", "subsystem": "1043:88b2", "revision": "a1", "class": "030000"}
    known = device(pci=pci, driver={"name": "nvidia", "version": "580"})
    assert (pci_vendor(known), pci_product(known)) == ("10de", "2684")
    assert pci_fact(known, "subsystem") == "1043:88b2"
    assert (pci_fact(known, "revision"), pci_fact(known, "class")) == ("a1", "030000")
    assert (pci_vendor(device()), pci_product(device())) == (None, None)
    assert (pci_vendor(device(pci={"id": "10de"})), pci_product(device(pci={"id": "10de"}))) == (
        "10de", None
    )  # fmt: skip
    drivers = [None, {"name": "nvidia"}, {"version": "580"}, {"name": "", "version": ""}]
    texts = [driver_text(device(driver=driver)) for driver in [known["driver"], *drivers]]
    assert texts == ["nvidia 580", None, "nvidia", "580", None]


def test_the_count_of_the_whole_device() -> None:
    assert whole(device(units=8), "units") == 8
    assert whole(device(units=6, chip={"nominal": {"units": 8}}), "units") == 8
    assert whole(device(units=6, chip={"nominal": {"threads": 8}}), "units") == 6
    assert whole(device(units="8"), "units") is None
    assert whole(device(), "threads") is None


def test_runtimes_and_their_other_names() -> None:
    names = ["NVIDIA", "rocm", "amd", "ze", "L0", " level_zero ", "oneapi", "cl", "vk", "ggml"]
    assert [canonical(name) for name in [*names, "container", "mps", "mlx", "other"]] == [
        "cuda", "hip", "hip", "level-zero", "level-zero", "level-zero", "sycl", "opencl", "vulkan",
        "ggml-vulkan", "nvidia-container", "metal", "metal", "other"
    ]  # fmt: skip
    assert NATIVE == {"nvidia": "cuda", "amd": "hip", "intel": "level-zero", "apple": "metal"}
    entries: Any = [
        {"visible": True, "index": 1}, None, {"visible": False, "index": 0},
        {"visible": True, "index": 0}, {"visible": True, "index": None}, {"visible": None},
    ]  # fmt: skip
    assert in_runtime_order(entries) == [3, 0, 4]


@pytest.mark.parametrize(
    ("driver", "vendor", "expected"),
    [
        ("vfio-pci", None, True),
        ("vfio-pci", "google", False),
        ("vfio-pci", "nvidia", True),
        ("pci-stub", "google", True),
        ("pciback", None, True),
        ("xen-pciback", None, True),
        ("xe-vfio-pci", None, True),
        ("nvgrace_gpu_vfio_pci", None, True),
        ("vfio", None, False),
        ("vfio-pci-core", None, False),
        ("nvidia", None, False),
        (None, None, False),
    ],
)
def test_drivers_that_keep_a_device_for_a_guest(
    driver: str | None, vendor: str | None, expected: bool
) -> None:
    assert is_passthrough_driver(driver, vendor) is expected


def test_ids_as_people_write_them() -> None:
    long = "uuid:GPU-12345678-9abc"
    ids = ["pci:0000:01:00.0", "pci:0001:01:00.0", long, "uuid:MIG-GPU-1/7/0", "uuid:1-2", "a:b"]
    assert [short_id(identity) for identity in ids] == [
        "01:00.0", "0001:01:00.0", "GPU-12345678", "MIG-GPU-1/7/0", "uuid:1-2", "a:b"
    ]  # fmt: skip
    twins = ["uuid:GPU-12345678-1", "uuid:GPU-12345678-2", "a:b"]
    assert short_ids(twins) == {twins[0]: twins[0], twins[1]: twins[1], "a:b": "a:b"}
    written = ["GPU-1", "gpu-12345678", "GPU-123456789", long.upper(), "GPU-"]
    assert [answers_to([long], text) for text in written] == [True, True, False, True, False]
    assert answers_to(["pci:0000:01:00.0"], "0000:01:00.0")
    assert not answers_to(["pci:0000:01:00.0"], "01:00")
    assert not answers_to(["dt:/soc/gpu"], "/soc/gpu")


def test_which_devices_a_text_names() -> None:
    listed = [["pci:0001:01:00.0"], ["cpu:0"], ["cpu:1"], ["cpu:2"], ["acme:1"]]
    texts = ["01:00.0", "cpu:0-1", "CPU:0,2", "cpu:2", "cpu:9", "acme:1", "x:1", "cpu:1-0", "1"]
    assert [named_by(text, listed) for text in texts] == [
        [0], [1, 2], [1, 3], [3], [], [4], [], [], []
    ]  # fmt: skip
    assert named_by("cpu:0000-0002", listed) == [1, 2, 3]
    assert named_by("cpu:00000-0002", listed) == []


@pytest.mark.parametrize(
    ("kind", "name", "short"),
    [
        ("cpu", "13th Gen Intel(R) Core(TM) i9-13900K", "Intel Core i9-13900K"),
        ("cpu", "Intel(R) Xeon(R) CPU E5-2690 v4 @ 2.60GHz", "Intel Xeon E5-2690 v4"),
        ("cpu", "AMD Ryzen 9 7950X 16-Core Processor", "AMD Ryzen 9 7950X"),
        ("cpu", "AMD Ryzen AI 9 HX 370 w/ Radeon 890M", "AMD Ryzen AI 9 HX 370"),
        ("cpu", "AMD Ryzen 7 5700G with Radeon Graphics", "AMD Ryzen 7 5700G"),
        ("cpu", "Next Gen Processor", "Next Gen Processor"),
        ("cpu", "Quad Processor", "Quad Processor"),
        ("gpu", "Intel(R) Arc(tm) A770 CPU @ 2", "Intel Arc A770 CPU @ 2"),
        ("gpu", "(R)", "(R)"),
    ],
)
def test_names_without_what_every_name_repeats(kind: str, name: str, short: str) -> None:
    assert short_name(device(kind=kind, name=name)) == short


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"kind": "display"}, "acme display adapter, cannot compute"),
        ({}, "unknown acme gpu"),
        ({"vendor": None}, "unknown gpu"),
        ({"chip": {"candidates": ["a/x", "a/y", "a/z"]}}, "x or y or z"),
        ({"chip": {"candidates": ["a/x", "a/y", "a/z", "a/w"]}}, "acme gpu, one of 4 chips"),
    ],
)
def test_a_device_without_a_name(fields: dict[str, Any], text: str) -> None:
    assert short_name(device(name=None, **fields)) == text


def test_a_part_says_what_distinguishes_it() -> None:
    card = device(name="MI300X")
    assert title(device(name="MI300X 1g"), card) == "1g"
    assert title(device(name="MI300X", id="acme:0/3"), card) == "partition 3"
    assert title(device(name="MI300X"), card) == "partition"
    assert title(device(name="Other"), card) == "Other"
    assert title(device(name="Other"), device(name=None)) == "Other"


def test_cores_of_a_processor() -> None:
    cpu = device(kind="cpu", units=8)
    assert cores(cpu) == " (8 cores)"
    assert cores(cpu, each=True) == " (8 cores each)"
    assert cores(device(kind="cpu", units=1)) == " (1 core)"
    assert cores({**cpu, "allowed": {"cores": 6}}) == " (8 cores, 6 allowed)"
    assert cores({**cpu, "allowed": {"cores": 8, "threads": 12}}) == " (8 cores)"
    assert cores({**cpu, "allowed": {"threads": 12}}) == " (8 cores, 12 allowed)"
    assert cores({**cpu, "allowed": {"cores": 0, "quota": 0}}) == (
        " (8 cores, 0 allowed, 0 CPUs of time)"
    )
    assert cores(device(kind="gpu", units=8)) == ""
    assert cores(device(kind="cpu")) == ""


@pytest.mark.parametrize(
    ("text", "count"),
    [
        *[
            ("20GiB", 20 << 30),
            ("20G", 20 << 30),
            ("20GB", 20 * 10**9),
            ("1k", 1024),
            ("1kb", 1000),
        ],
        *[(" 1 MiB ", 1 << 20), ("2tb", 2 * 10**12), ("1P", 1 << 50), ("80e9", 80 * 10**9)],
        *[("1", 1), ("1b", 1), (1, 1), ("1.5k", 1536), ((1 << 62) - 512, (1 << 62) - 512)],
    ],
)
def test_amounts_of_memory(text: str | int, count: int) -> None:
    assert parse_size(text) == count


@pytest.mark.parametrize(
    "text", ["0", 0, -1, "0.5", "1ki", "1x", "GiB", "", "4096P", 1 << 62, "nan", "inf", "1e30"]
)
def test_no_amounts_of_memory(text: str | int) -> None:
    with pytest.raises(ValueError, match="is no amount of memory; write it as 20GiB"):
        parse_size(text)


def test_amounts_as_they_are_shown() -> None:
    counts = [0, 1, 1023, 1024, (1 << 20) - 1, 1 << 20, 1 << 30, (1 << 40) - 1, 1 << 40, 1 << 51]
    assert [format_size(count) for count in counts] == [
        "0 B", "1 B", "1023 B", "1 KiB", "1023.9 KiB", "1 MiB", "1 GiB", "1023.9 GiB", "1 TiB",
        "2048 TiB"
    ]  # fmt: skip
    assert [format_size(1 << 30, decimals=n) for n in (0, 1, 2)] == ["1 GiB", "1.0 GiB", "1.00 GiB"]
    assert format_size(1000, decimals=1) == "1000 B"
    assert [gib(count) for count in (0, 80 << 30, (80 << 30) - 1, 1 << 40, 3 << 29)] == [
        "0 B", "80 GiB", "80.0 GiB", "1.0 TiB", "1.5 GiB"
    ]  # fmt: skip


def test_lists_and_counts_in_sentences() -> None:
    assert [joined("abc"[:count]) for count in range(4)] == ["", "a", "a or b", "a, b or c"]
    assert joined("ab", "and") == "a and b"
    assert [counted(count, "core") for count in (0, 1, 2)] == ["0 cores", "1 core", "2 cores"]
    assert counted(2, "body", "bodies") == "2 bodies"


def test_close_names() -> None:
    known = ["amd", "nvidia", "NVML"]
    assert did_you_mean("nvidai", known) == "did you mean 'nvidia'?"
    assert did_you_mean("zzz", known) == "known: NVML, amd, nvidia"
    assert did_you_mean("zzz", []) == "none is known"
    assert (closest("nvml", known), closest("zzz", known)) == ("NVML", None)
    options = ["--anonymise", "--json"]
    assert [closest(f"--{text}", options, "--") for text in ("an", "ano", "z")] == [
        None, "--anonymise", None
    ]  # fmt: skip
    assert (suggestion("nvidai", known), suggestion("zzz", known)) == (" Did you mean nvidia?", "")


def test_foreign_text_in_one_line() -> None:
    assert clean_text("a" * 256) == "a" * 256
    assert clean_text("a" * 257) == "a" * 255 + "…"
    assert clean_text("abc", 2) == "a…"
    bad = "\x1b\x00\u200b\u200f\u202a\u202e\u2066\u2069\ud800"
    assert clean_text(f"a\tb\nc{bad}\u200a\u2010 \xe9") == (
        "a b c" + "\ufffd" * 9 + "\ufffd\u2010 \xe9"
    )


def test_errors_in_one_line() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise ValueError

    assert error_text(ValueError("x\n")) == "ValueError: x "
    assert error_text(ValueError()) == "ValueError"
    assert error_text(Odd()) == "Odd: (its message cannot be printed)"
    assert len(error_text(ValueError("a" * 2000))) == 1024
