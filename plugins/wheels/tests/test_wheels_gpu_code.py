"""The bounds of the readers of GPU code: what ends exactly where its section does, and one more."""

from __future__ import annotations

import struct
from typing import Any

import pytest
import wheel_files as build

from probe_wheels.formats import gpu_code
from probe_wheels.formats.executables import BadFile
from probe_wheels.formats.gpu_code import (
    built_for,
    bundle_size,
    cuda_groups,
    hip_groups,
    pack_targets,
)
from probe_wheels.images.layers import memory

# Written out: a bound that becomes smaller than what real libraries have is a fault.
MAX_ENTRIES, MAX_PADDING, MAX_TARGETS, MAX_ID, MAX_PAGES, PAGE = 64, 512, 256, 256, 64, 4096
SM80 = build.container(["sm_80"])
LONGER = "a container of its CUDA code is longer than its section"
UNREADABLE = "its CUDA code is not readable"
NONE_READ = "no container of its CUDA code can be read"
TWO, ONE = {("sm_80",): 2}, {("sm_80",): 1}


def raw_container(body: bytes, header: int = 16, more: int = 0) -> bytes:
    head = struct.pack("<IHHQ", 0xBA55ED50, 1, header, len(body) + more)
    return head.ljust(header, b"\0") + body


def of_kind(kind: int, target: str) -> bytes:
    return struct.pack("<H", kind) + build.entry(target)[2:]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (SM80 * 2, (TWO, None)),
        (SM80[:-1], ({}, LONGER)),
        (SM80 + SM80[:15], (ONE, None)),
        (SM80 + SM80[:16], (ONE, LONGER)),
        (SM80 + bytes(8 * MAX_PADDING) + SM80, (TWO, None)),
        (SM80 + bytes(8 * MAX_PADDING + 8) + SM80, (ONE, None)),
        (SM80 + (bytes(8 * MAX_PADDING) + SM80) * 2, ({("sm_80",): 3}, None)),
        (SM80 + b"\0\0\0\0\0\0\0\1" + bytes(8), (ONE, UNREADABLE)),
        (SM80 + b"\0\0\0\0\0\0\0\0" + b"\1" * 16, (ONE, UNREADABLE)),
        (raw_container(build.entry("sm_80"), 24), (ONE, None)),
        (raw_container(build.entry("sm_80"), 16), (ONE, None)),
        (struct.pack("<IHHQ", 0xBA55ED50, 1, 15, 72) + build.entry("sm_80"), ({}, LONGER)),
        # An entry without code ends where its container does.
        (raw_container(build.entry("sm_80", payload=0)), (ONE, None)),
        (raw_container(build.entry("sm_80", payload=0)[:63]), ({(): 1}, NONE_READ)),
        (raw_container(build.entry("sm_80", header=64)[:-1]), ({(): 1}, NONE_READ)),
        (raw_container(build.entry("sm_80")[:4] + b"\x3f\0\0\0" + build.entry("sm_80")[8:]),
         ({(): 1}, NONE_READ)),
        # Other kinds of code are passed over.
        (raw_container(of_kind(3, "sm_70") + build.entry("sm_80")), (ONE, None)),
        (raw_container(of_kind(0, "sm_70") + build.entry("sm_80")), (ONE, None)),
        (raw_container(of_kind(3, "sm_70")), ({(): 1}, NONE_READ)),
        (raw_container(of_kind(3, "sm_70")) + SM80, ({(): 1, ("sm_80",): 1}, None)),
        (b"", ({}, None)),
    ],
)  # fmt: skip
def test_containers_of_cuda(raw: bytes, expected: Any) -> None:
    assert cuda_groups(memory(raw), 0, len(raw)) == expected
    # A section that begins anywhere: containers lie at multiples of eight in the file.
    assert cuda_groups(memory(bytes(16) + raw), 9, len(raw) + 7) == expected


def test_a_section_that_the_file_does_not_have_is_cut_off() -> None:
    assert cuda_groups(memory(SM80 + SM80[:15]), 0, 4096) == (ONE, "its CUDA code is cut off")


def test_a_container_has_so_many_entries_at_most() -> None:
    targets = [f"sm_{number}" for number in range(100, 101 + MAX_ENTRIES)]
    raw = build.container(targets)
    assert cuda_groups(memory(raw), 0, len(raw)) == ({tuple(targets[:MAX_ENTRIES]): 1}, None)


def test_a_section_has_so_many_containers_and_bundles_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gpu_code, "MAX_CONTAINERS", 3)
    monkeypatch.setattr(gpu_code, "MAX_BUNDLES", 3)
    assert cuda_groups(memory(SM80 * 2), 0, 2 * len(SM80)) == (TWO, None)
    text = "it has more than 3 containers of CUDA code"
    assert cuda_groups(memory(SM80 * 4), 0, 4 * len(SM80)) == ({("sm_80",): 3}, text)
    raw = build.pages([build.bundle(["gfx1100"])] * 4)
    assert hip_groups(memory(raw), 0, 2 * PAGE) == ({("gfx1100",): 2}, 0, None)
    text = "it has more than 3 bundles of HIP code"
    assert hip_groups(memory(raw), 0, len(raw)) == ({("gfx1100",): 3}, 0, text)


GFX = build.bundle(["gfx1100"])
ONCE, TWICE = {("gfx1100",): 1}, {("gfx1100",): 2}
NO_HIP = "its HIP code is not readable"
TOO_LONG = "a bundle of its HIP code is longer than its section"


def listed(*ids: str, count: int | None = None) -> bytes:
    """A bundle whose ids are given whole, of no code."""
    table = b"".join(struct.pack("<QQQ", 0, 0, len(id_)) + id_.encode() for id_ in ids)
    return gpu_code.PLAIN + struct.pack("<Q", len(ids) if count is None else count) + table


def amd(number: int) -> str:
    return f"hipv4-amdgcn-amd-amdhsa--gfx{number}"


LONG = "gfx" + "1" * (MAX_ID - len(amd(0)) + 1)
MANY = tuple(f"gfx{number}" for number in range(1000, 1000 + MAX_TARGETS))


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (GFX, (ONCE, 0, None)),
        (build.pages([GFX, GFX]), (TWICE, 0, None)),
        (GFX[:-1], ({}, 0, TOO_LONG)),
        (GFX.ljust(PAGE, b"\0") + bytes(PAGE * MAX_PAGES) + GFX, (TWICE, 0, None)),
        (GFX.ljust(PAGE, b"\0") + bytes(PAGE * (MAX_PAGES + 1)) + GFX, (ONCE, 0, None)),
        (GFX.ljust(PAGE, b"\0") + b"\1" * PAGE, (ONCE, 0, NO_HIP)),
        (bytes(PAGE) + b"\0\1" * 2048 + GFX, ({}, 0, NO_HIP)),
        (build.bundle(["gfx1100"], PAGE).ljust(2 * PAGE, b"\0") + GFX, (TWICE, 0, None)),
        (listed(amd(1100)), (ONCE, 0, None)),
        (listed(amd(1100))[:-1], ({}, 0, NO_HIP)),
        (listed(amd(0)[:-4] + LONG), ({(LONG,): 1}, 0, None)),
        (listed(amd(0)[:-4] + LONG + "1"), ({}, 0, NO_HIP)),
        # Of the host, of another vendor, and of no processor: nothing for an AMD GPU.
        (listed("host-x86_64-unknown-linux-gnu--gfx90a", amd(1100)), (ONCE, 0, None)),
        (listed("openmp-nvptx64-nvidia-cuda--sm_80"), ({}, 0, None)),
        (listed("hipv4-amdgcn-amd-amdhsa--generic"), ({}, 0, None)),
        (listed("hipv4-amdgcn-amd-amdhsa-gfx90a"), ({}, 0, None)),
        # Lists longer than a page.
        (build.bundle(MANY[:31]), ({MANY[:31]: 1}, 0, None)),
        (build.bundle(MANY[:80]), ({MANY[:80]: 1}, 0, None)),
        (listed(*(amd(at) for at in range(1000, 1000 + MAX_TARGETS))), ({MANY: 1}, 0, None)),
        (listed(*(amd(number) for number in range(1000, 1001 + MAX_TARGETS))), ({}, 0, NO_HIP)),
        (b"CCOB" + struct.pack("<HH", 4, 1) + bytes(64), ({}, 0, NO_HIP)),
        (b"CCOB\1", ({}, 0, NO_HIP)),
        (build.compressed(b"z" * 600), ({}, 1, None)),
        (b"", ({}, 0, None)),
    ],
)  # fmt: skip
def test_bundles_of_hip(raw: bytes, expected: Any) -> None:
    assert hip_groups(memory(raw), 0, len(raw)) == expected
    # Pages are counted from the start of the section.
    assert hip_groups(memory(bytes(100) + raw), 100, len(raw)) == expected


@pytest.mark.parametrize(
    ("head", "size"),
    [
        (GFX, len(GFX)),
        (build.bundle([f"gfx{number}" for number in range(30)]), 31),
        (build.bundle([f"gfx{number}" for number in range(31)]), 0),
        (build.compressed(GFX + b"z" * 600, 1), 0),
        (build.compressed(GFX + b"z" * 600, 2), 2),
        (build.compressed(GFX + b"z" * 600, 3), 3),
        (b"CCOB" + struct.pack("<HH", 4, 1) + bytes(64), 0),
        (b"CCOB" + struct.pack("<HH", 0, 1) + bytes(64), 0),
        (b"CCOB\2\0\1\0", 0),
        (GFX[:40], 0),
        (b"other", 0),
    ],
)
def test_the_size_of_a_bundle(head: bytes, size: int) -> None:
    assert bundle_size(head[:PAGE]) == (len(head) if size else 0)


def messagepack(*names: bytes) -> bytes:
    texts = b"".join(bytes([0xA0 | len(name)]) + name for name in names)
    return b"\x81\xaagfx_arches" + bytes([0x90 | len(names)]) + texts


def test_the_head_of_a_kernel_pack() -> None:
    body = messagepack(b"gfx1100", b"gfx90a", b"x86")
    head = b"KPAK" + struct.pack("<IQ", 1, 16)
    assert pack_targets(memory(head + body)) == ("gfx1100", "gfx90a")
    assert pack_targets(memory(b"KPAK" + struct.pack("<IQ", 1, 20) + b"skip" + body)) == (
        "gfx1100", "gfx90a"
    )  # fmt: skip
    for raw, problem in [
        (head[:15], "it is no kernel pack"),
        (b"KPAC" + head[4:] + body, "it is no kernel pack"),
        (head + b"\x90", "the kernel pack names no targets"),
        (head + b"\x81\xaagfx_arches\x01", "the kernel pack names no targets"),
    ]:
        with pytest.raises(BadFile, match=problem):
            pack_targets(memory(raw))


@pytest.mark.parametrize("payload", [b"", b"code", b"odd"])
def test_members_begin_at_even_offsets(payload: bytes) -> None:
    raw = build.archive(["pad_0", "64.12.55.8", "32.20.1.4", "64.12", "generic_ir"], payload)
    assert built_for(memory(raw), 0, len(raw)) == (["12.55.8", "20.1.4"], True)
    assert built_for(memory(b"x" + raw), 1, len(raw)) == (["12.55.8", "20.1.4"], True)
    assert built_for(memory(raw[1:]), 0, len(raw)) == ([], False)
    # What is cut within a head, or has no sign at its end, is not read further.
    end = raw.index(b"generic_ir")
    assert built_for(memory(raw[: end + 59]), 0, len(raw)) == (["12.55.8", "20.1.4"], False)
    assert built_for(memory(raw[: end + 60]), 0, len(raw)) == (["12.55.8", "20.1.4"], True)
    damaged = raw[: end + 58] + b"``" + raw[end + 60 :]
    assert built_for(memory(damaged), 0, len(raw)) == (["12.55.8", "20.1.4"], False)
    damaged = raw[: end + 48] + b"some      " + raw[end + 58 :]
    assert built_for(memory(damaged), 0, len(raw)) == (["12.55.8", "20.1.4"], False)


def test_an_image_has_so_many_members_at_most() -> None:
    names = [f"64.1.{number}.0" for number in range(64 + 1)]
    raw = build.archive(names)
    found = [f"1.{number}.0" for number in range(64)]
    assert built_for(memory(raw), 0, len(raw)) == (found, False)
