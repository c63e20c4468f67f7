"""Short ids: what a table shows is distinct, and every command finds the device again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe_core.model.naming import answers_to, named_by, short_id, short_ids

GPU_A = "uuid:GPU-1a2b3c4d-0000-4000-8000-000000000000"
GPU_B = "uuid:GPU-1a2b3c4d-1111-4000-8000-000000000000"


@pytest.mark.parametrize(
    ("identity", "short"),
    [
        ("pci:0000:01:00.0", "01:00.0"),
        ("pci:000f:01:00.0", "000f:01:00.0"),
        ("pci:10000:01:00.0", "10000:01:00.0"),
        (GPU_A, "GPU-1a2b3c4d"),
        ("uuid:MIG-d4e3fb3e-0000-5000-8000-000000000000", "MIG-d4e3fb3e"),
        ("uuid:MIG-GPU-1a2b/7/0", "MIG-GPU-1a2b/7/0"),
        ("uuid:0f0e0d0c-0000-1000-8000-000000000000", "uuid:0f0e0d0c-0000-1000-8000-000000000000"),
        ("dt:/axi/v3d@2000000", "dt:/axi/v3d@2000000"),
        ("cpu:0", "cpu:0"),
        ("amd:0000:05:00.0/xcp1", "amd:0000:05:00.0/xcp1"),
    ],
)
def test_short_form(identity: str, short: str) -> None:
    assert short_id(identity) == short
    assert answers_to([identity], short)
    assert answers_to([identity], short.upper())
    assert answers_to([identity], identity)


def test_two_that_would_look_alike_are_whole() -> None:
    assert short_ids([GPU_A, GPU_B, "cpu:0"]) == {GPU_A: GPU_A, GPU_B: GPU_B, "cpu:0": "cpu:0"}
    assert named_by("GPU-1a2b3c4d", [[GPU_A], [GPU_B]]) == [0, 1]
    assert named_by("GPU-1a2b3c4d-1", [[GPU_A], [GPU_B]]) == [1]


def test_a_domain_may_be_left_out_where_domain_zero_lacks_the_address() -> None:
    ids = [["pci:000f:01:00.0"], ["pci:0000:02:00.0"], ["pci:0001:02:00.0"]]
    assert named_by("01:00.0", ids) == [0]
    assert named_by("02:00.0", ids) == [1]
    assert named_by("0001:02:00.0", ids) == [2]
    assert named_by("03:00.0", ids) == []


def test_processors_of_one_row() -> None:
    ids = [["pci:0000:01:00.0"], ["cpu:0"], ["cpu:1"], ["cpu:3"]]
    assert named_by("cpu:0-1", ids) == [1, 2]
    assert named_by("cpu:0,3", ids) == [1, 3]
    assert named_by("cpu:3-0", ids) == []
    assert named_by("cpu:", ids) == []
    assert named_by("cpu:" + "0," * 127 + "01", ids) == [1, 2]
    assert named_by("cpu:" + "0," * 128 + "1", ids) == [1]  # beyond 256 characters


@pytest.mark.parametrize("text", ["", "GPU-", "0", ":", "cpu:99999999-999999999", "\0"])
def test_what_names_nothing(text: str) -> None:
    assert named_by(text, [["pci:0000:01:00.0", GPU_A], ["cpu:0"]]) == []


HEX = st.text("0123456789abcdef", min_size=8, max_size=8)
ADDRESS = st.builds("pci:{:04x}:{:02x}:00.0".format, st.integers(0, 15), st.integers(0, 15))
IDS = st.one_of(ADDRESS, HEX.map("uuid:GPU-{}-4000".format), st.sampled_from(["cpu:0", "cpu:1"]))


@pytest.mark.heavy
@given(st.lists(IDS, unique=True, max_size=8))
def test_whatever_is_shown_names_the_device(ids: list[str]) -> None:
    shown = short_ids(ids)
    assert len({form.lower() for form in shown.values()}) == len(ids)
    for place, identity in enumerate(ids):
        assert named_by(shown[identity], [[name] for name in ids]) == [place]
