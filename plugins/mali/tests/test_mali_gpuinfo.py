"""Every form of the line in which Arm's driver describes a GPU."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe_mali.gpuinfo import GpuInfo


@pytest.mark.parametrize(
    ("text", "model", "cores", "revision", "gpu_id"),
    [
        ("Mali-G610 4 cores r0p0 0xA867", "Mali-G610", 4, "r0p0", "arm:0xa867"),
        ("Mali-T60x MP4 r0p0 0x6956", "Mali-T60x", 4, "r0p0", "arm:0x6956"),
        ("Mali-G52 1 core r1p0 0x7402", "Mali-G52", 1, "r1p0", "arm:0x7402"),
        ("Mali-T86x MP4 r2p0 0x0860", "Mali-T86x", 4, "r2p0", "arm:0x0860"),
        ("(Unknown Mali GPU) 7 cores r0p1 0xC870", None, 7, "r0p1", "arm:0xc870"),
        ("Mali-G715-Immortalis 11 cores r1p0 0xB002", "Mali-G715-Immortalis", 11, "r1p0",
         "arm:0xb002"),
        ("Mali-G71 0 cores r0p0 0x0000", "Mali-G71", None, "r0p0", None),
        ("Mali-G71", "Mali-G71", None, None, None),
        ("Mali-G71 8 cores r0pp0 0x1234", "Mali-G71", 8, None, "arm:0x1234"),
        ("Mali-G71 8 cores rxp0 0x1234", "Mali-G71", 8, None, "arm:0x1234"),
        ("", None, None, None, None),
        ("Permission denied", None, None, None, None),
        ("Mali-G71 8 rounds r0p0", "Mali-G71", None, "r0p0", None),
        ("Mali-G71 MP8", "Mali-G71", 8, None, None),
        ("Mali-G71 MPx 8 cores", "Mali-G71", 8, None, None),
        ("Mali-G71 8 0x1234 cores", "Mali-G71", None, None, "arm:0x1234"),
        ("Mali-G71 8 cores 0xzz", "Mali-G71", 8, None, None),
        ("Mali-G71 8 cores 0X12", "Mali-G71", 8, None, "arm:0x0012"),
        (f"Mali-G71 {'x' * 80} 8 cores", "Mali-G71", 8, None, None),
        (f"Mali-G71 {'x' * 81} 8 cores", None, None, None, None),
    ],
)  # fmt: skip
def test_forms(
    text: str, model: str | None, cores: int | None, revision: str | None, gpu_id: str | None
) -> None:
    info = GpuInfo(text)
    assert (info.model, info.cores, info.revision, info.gpu_id) == (model, cores, revision, gpu_id)


@given(st.text(max_size=80))
def test_no_text_raises(text: str) -> None:
    info = GpuInfo(text)
    assert info.cores is None or info.cores > 0
