"""The readers, on files that are built as the real ones are: exact targets and counts."""

from __future__ import annotations

import struct
from functools import reduce
from pathlib import Path

import pytest
import wheel_files as build

from probe_wheels.documents import LibraryDoc
from probe_wheels.files import Budget
from probe_wheels.formats import packed
from probe_wheels.formats.executables import FAT, THIN, BadFile, read_macho
from probe_wheels.formats.library import read_library
from probe_wheels.records import is_library


def read(folder: Path, raw: bytes, name: str = "lib.so") -> LibraryDoc:
    path = folder / name
    path.write_bytes(raw)
    return read_library(str(path), Budget())


def test_containers_are_counted_by_their_set_of_targets(tmp_path: Path) -> None:
    raw = build.cuda({"sm_75 sm_80 sm_90a ptx_90@8.7": 3, "sm_100f sm_120a": 1})
    assert read(tmp_path, raw) == {
        "format": "elf",
        "machines": ["x86_64"],
        "cuda": [(["ptx_90@8.7", "sm_75", "sm_80", "sm_90a"], 3), (["sm_100f", "sm_120a"], 1)],
        "needed": [],
    }


@pytest.mark.parametrize("header", [64, 72, 80, 96, 104, 112])
def test_entries_have_headers_of_many_sizes(tmp_path: Path, header: int) -> None:
    body = build.entry("sm_70", header=header) + build.entry("sm_80", payload=24)
    raw = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body
    assert read(tmp_path, build.elf([(".nv_fatbin", raw)]))["cuda"] == [(["sm_70", "sm_80"], 1)]


def test_zeros_between_containers_are_skipped(tmp_path: Path) -> None:
    """Windows' linker leaves eight of them between two objects (onnxruntime-gpu 1.31.1)."""
    raw = build.container(["sm_80"]) + bytes(8) + build.container(["sm_80"]) + bytes(400)
    assert read(tmp_path, build.pe([(".nv_fatb", raw)]), "x.dll") == {
        "format": "pe",
        "machines": ["x86_64"],
        "cuda": [(["sm_80"], 2)],
    }


def test_code_that_is_not_linked_does_not_count(tmp_path: Path) -> None:
    """Relocatable PTX cannot be loaded: bitsandbytes has it beside machine code alone."""
    relocatable = build.fatbin({"ptx_90@8.7": 1})
    raw = build.elf([("__nv_relfatbin", relocatable), (".nv_fatbin", build.fatbin({"sm_70": 1}))])
    library = read(tmp_path, raw)
    assert library["cuda"] == [(["sm_70"], 1)]
    assert library["relocatable"] is True


@pytest.mark.parametrize(("has_count", "has_names"), [(False, True), (True, False), (False, False)])
def test_numbers_that_are_too_large_for_a_header_are_in_the_first_section(
    tmp_path: Path, has_count: bool, has_names: bool
) -> None:
    """What has more sections than 16 bits count (elf(5): e_shnum, e_shstrndx)."""
    raw = bytearray(build.elf([(".nv_fatbin", build.fatbin({"sm_80": 1}))]))
    (table,) = struct.unpack_from("<Q", raw, 0x28)
    count, names = struct.unpack_from("<HH", raw, 60)
    struct.pack_into("<QI", raw, table + 32, count, names)
    struct.pack_into("<HH", raw, 60, count * has_count, names if has_names else 0xFFFF)
    assert read(tmp_path, bytes(raw))["cuda"] == [(["sm_80"], 1)]


def test_a_cut_file_keeps_what_was_read(tmp_path: Path) -> None:
    section = build.fatbin({"sm_80": 2})
    library = read(
        tmp_path, build.elf([(".nv_fatbin", section + b"\x50\xed\x55\xba\1\0\x10\0\xff")])
    )
    assert library["cuda"] == [(["sm_80"], 2)]
    assert read(tmp_path, build.elf([(".nv_fatbin", section)], cut=300)) == {
        "problem": "its section headers are cut off"
    }


@pytest.mark.parametrize(
    ("abi", "flags", "target"),
    [
        (7, 0x5A055A, "sm_90"),
        (7, 0x5A0D5A, "sm_90a"),
        (7, 0x340534, "sm_52"),
        (8, 0x6005A04, "sm_90a"),
        (8, 0x6006402, "sm_100f"),
        (8, 0x6007802, "sm_120f"),
    ],
)
def test_a_cubin_is_known_by_its_flags(tmp_path: Path, abi: int, flags: int, target: str) -> None:
    """Flags as `cuobjdump -xelf` wrote them of xformers, cupy and vLLM."""
    raw = bytearray(build.elf([(".text", b"")], machine=190, flags=flags))
    raw[8] = abi
    assert read(tmp_path, bytes(raw), "k.cubin")["cuda"] == [([target], 1)]


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("method", [0, 1])
def test_bundles_plain_and_compressed(tmp_path: Path, version: int, method: int) -> None:
    plain = build.bundle(["gfx90a:sramecc+:xnack-", "gfx1100", "gfx9-4-generic"])
    packed = build.compressed(plain + b"z" * 600, version, method)
    raws = [packed] if version == 1 else [plain, packed]
    library = read(tmp_path, build.elf([(".hip_fatbin", build.pages(raws))]))
    targets = ["gfx1100", "gfx9-4-generic", "gfx90a:sramecc+:xnack-"]
    assert library["hip"] == [(targets, len(raws))]
    assert "unread" not in library


def test_what_cannot_be_decompressed_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed, "_decoder", lambda: packed._absent)
    raw = build.compressed(build.bundle(["gfx1100"]) + b"z" * 600)
    library = read(tmp_path, build.elf([(".hip_fatbin", build.pages([raw, raw]))]))
    assert library["unread"] == 2
    assert "hip" not in library


def test_a_kernel_pack_names_its_processors(tmp_path: Path) -> None:
    contents = b"\x82\xaagfx_arches\x92\xa7gfx1100\xa6gfx942\xa4name\xa5torch"
    raw = b"KPAK" + struct.pack("<IQ", 1, 64) + bytes(48) + contents
    assert read(tmp_path, raw, "torch.kpack")["hip"] == [(["gfx1100", "gfx942"], 1)]
    library = read(tmp_path, build.elf([(".rocm_kpack_ref", b"x"), (".hip_fatbin", bytes(4096))]))
    assert library["packs"] is True
    assert "hip" not in library


@pytest.mark.parametrize("packed", [False, True])
def test_sycl_names_the_chips_that_it_was_built_for(tmp_path: Path, packed: bool) -> None:
    """As `ar t` lists the images of bitsandbytes 0.50.2, which `zstd -d` unpacks."""
    assert read(tmp_path, build.sycl(""))["intel"] == "spirv"
    library = read(tmp_path, build.sycl("12.60.7 12.70.4 12.55.8", packed=packed))
    assert library["intel"] == "native"
    assert library["xe"] == ["12.60.7", "12.70.4", "12.55.8"]
    assert library["spirv"] is True


IMAGES = {
    "text": b"x",
    "empty": b"!<arch>\n",
    "header": b"!<arch>\n" + b"9" * 60,
    "cut": build.archive(["64.20.1.0"])[:40],
    "zstd": b"\x28\xb5\x2f\xfd" + b"\xff" * 64,
    "other-names": build.archive(["generic"] * 100),
}


@pytest.mark.parametrize("name", IMAGES)
def test_sycl_that_cannot_be_read_names_no_chip(tmp_path: Path, name: str) -> None:
    library = read(tmp_path, build.elf([(build.SPIRV + "_gen", IMAGES[name])]))
    assert (library["intel"], library["xe"]) == ("native", [])


@pytest.mark.parametrize(
    ("flags", "target"),
    [
        (0x54C, "gfx942"),
        (0xD4C, "gfx942:sramecc+"),
        (0xB4C, "gfx942:sramecc-:xnack+"),
        (0x63F, "gfx90a:xnack-"),
        (0x53F, "gfx90a"),
        (0x54F, "gfx950"),
        (0x2C, "gfx900"),
        (0x2D, "gfx902"),
        (0x2F, "gfx906"),
        (0x30, "gfx908"),
        (0x32, "gfx90c"),
        (0x40, "gfx940"),
        (0x4B, "gfx941"),
        (0x33, "gfx1010"),
        (0x36, "gfx1030"),
        (0x3D, "gfx1035"),
        (0x45, "gfx1036"),
        (0x41, "gfx1100"),
        (0x47, "gfx1102"),
        (0x44, "gfx1103"),
        (0x43, "gfx1150"),
        (0x4A, "gfx1151"),
        (0x48, "gfx1200"),
        (0x4E, "gfx1201"),
        (0x51, "gfx9-generic"),
        (0x5F, "gfx9-4-generic"),
        (0x1000054, "gfx11-generic"),
        (0xFF, None),
    ],
)
def test_an_amd_code_object_is_known_by_its_flags(
    tmp_path: Path, flags: int, target: str | None
) -> None:
    """Flags as clang 19 writes them, and aiter's files for gfx950 have them."""
    raw = build.elf([(".text", b"")], machine=224, flags=flags)
    assert read(tmp_path, raw, "k.hsaco").get("hip", []) == ([([target], 1)] if target else [])


def test_bundles_as_clang_19_links_them(tmp_path: Path) -> None:
    """Its id of the host ends in two dashes and no processor."""
    raw = build.bundle(["gfx10-3-generic", "gfx90a:xnack+", "gfx942:sramecc+"])
    raw = raw.replace(b"host-x86_64-unknown-linux-gnu-", b"host-x86_64-unknown-linux-----")
    library = read(tmp_path, build.elf([(".hip_fatbin", build.pages([raw, raw]))]))
    assert library["hip"] == [(["gfx10-3-generic", "gfx90a:xnack+", "gfx942:sramecc+"], 2)]


def test_needed_libraries_are_those_of_the_gpus_runtimes(tmp_path: Path) -> None:
    raw = build.needing("libcudart.so.12", "libc.so.6", "libvulkan.so.1")
    library = read(tmp_path, raw)
    assert library["needed"] == ["libcudart.so.12"]
    assert library["vulkan"] is True


def test_metal(tmp_path: Path) -> None:
    assert read(tmp_path, b"MTLB" + bytes(60), "mlx.metallib") == {
        "format": "metallib",
        "metal": True,
    }
    name = b"/System/Library/Frameworks/Metal.framework/Versions/A/Metal\0"
    command = struct.pack("<IIIIII", 0xC, 24 + len(name), 24, 0, 0, 0) + name
    head = b"\xcf\xfa\xed\xfe" + struct.pack("<IIIIIII", 0x0100000C, 0, 6, 1, len(command), 0, 0)
    assert read(tmp_path, head + command, "libmlx.dylib") == {
        "format": "macho",
        "machines": ["arm64"],
        "metal": True,
    }


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("torch/lib/libtorch_cuda.so", True),
        ("tensorflow/libtensorflow_cc.so.2", True),
        ("x.libs/libctranslate2-a7a60d30.so.4.8.5", True),
        ("torch/lib/torch_cuda.dll", True),
        ("torch/version.py", False),
        ("docs/how.so.it.is", False),
    ],
)
def test_libraries_are_known_by_their_names(path: str, expected: bool) -> None:
    assert is_library(path) is expected


class Raw:
    """A file in memory, as readers of formats take it."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw

    def read(self, offset: int, size: int) -> bytes:
        return self.raw[offset : offset + size]


def macho(cpu: int, *commands: tuple[int, str]) -> bytes:
    body = b""
    for kind, text in commands:
        name = text.encode() + b"\0" * (8 - len(text) % 8)
        body += struct.pack("<IIIIII", kind, 24 + len(name), 24, 0, 0, 0) + name
    return THIN + struct.pack("<IIIIIII", cpu, 0, 6, len(commands), len(body), 0, 0) + body


def test_what_a_library_of_a_mac_links() -> None:
    linked = [(0xC, "/a"), (0x19, "/segment"), (0x80000018, "/weak"), (0x8000001F, "/re")]
    intel = macho(0x01000007, *linked, (0xD, "/own"))
    assert read_macho(Raw(intel)) == (["x86_64"], ["/a", "/weak", "/re"])
    # A whole file of several machines: each part's machine, and each name once.
    arm, other = macho(0x0100000C, (0xC, "/a"), (0xC, "/b")), macho(7)
    parts, place, table = (intel, arm, other), 4096, b""
    for part in parts:
        table += struct.pack(">IIIII", 0, 0, place, len(part), 0)
        place += 4096
    fat = (FAT + struct.pack(">I", len(parts)) + table).ljust(4096, b"\0")
    fat += b"".join(part.ljust(4096, b"\0") for part in parts)
    machines, names = read_macho(Raw(fat))
    assert (machines, names) == (["x86_64", "arm64", "7"], ["/a", "/weak", "/re", "/b"])


@pytest.mark.parametrize("cut", [4, 31, 4095])
def test_a_part_of_a_mac_library_without_its_header(cut: int) -> None:
    raw = macho(0x0100000C, (0xC, "/a"))
    with pytest.raises(BadFile, match="first header"):
        read_macho(Raw(raw[:cut] if cut < 32 else FAT + struct.pack(">I", 1) + bytes(cut)))


def test_commands_of_a_mac_library_that_do_not_fit_are_not_read() -> None:
    raw = macho(0x0100000C, (0xC, "/a"), (0xC, "/b"))
    assert read_macho(Raw(raw[:-1])) == (["arm64"], ["/a"])
    small = bytearray(raw)
    small[36] = 7  # a command shorter than its own head
    assert read_macho(Raw(bytes(small))) == (["arm64"], [])


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        # MessagePack's specification, each format at the bounds of its first byte.
        (b"\x00", 0),
        (b"\x7f", 127),
        (b"\xe0", -32),
        (b"\xff", -1),
        (b"\xc0", None),
        (b"\xc2", False),
        (b"\xc3", True),
        (b"\xcc\xff", 255),
        (b"\xcd\x01\x00", 256),
        (b"\xce\x00\x01\x00\x00", 65536),
        (b"\xcf" + b"\xff" * 8, (1 << 64) - 1),
        (b"\xd0\xff", -1),
        (b"\xd1\xff\x00", -256),
        (b"\xd2\xff\xff\x00\x00", -65536),
        (b"\xd3\x80" + bytes(7), -(1 << 63)),
        (b"\xca" + bytes(4), None),  # a float's value is not needed
        (b"\xcb" + bytes(8), None),
        (b"\xa0", ""),
        (b"\xbf" + b"a" * 31, "a" * 31),
        (b"\xd9\x03abc", "abc"),
        (b"\xda\x00\x03abc", "abc"),
        (b"\xdb\x00\x00\x00\x03abc", "abc"),
        (b"\xa1\xff", "\ufffd"),
        (b"\xc4\x02ab", b"ab"),
        (b"\xc5\x00\x02ab", b"ab"),
        (b"\xc6\x00\x00\x00\x02ab", b"ab"),
        (b"\x90", []),
        (b"\x92\x01\xc0", [1, None]),
        (b"\x9f" + b"\x05" * 15, [5] * 15),
        (b"\xdc\x00\x02\x01\x02", [1, 2]),
        (b"\xdd\x00\x00\x00\x01\x01", [1]),
        (b"\x80", {}),
        (b"\x81\xa1a\x01", {"a": 1}),
        (b"\x81\x07\x01", {"7": 1}),
        (b"\xde\x00\x01\xa1a\x92\x01\x02", {"a": [1, 2]}),
        (b"\xdf\x00\x00\x00\x01\xa1a\xc2", {"a": False}),
        (b"\x01\x02", 1),  # the first value counts
        (b"\x91" * 16 + b"\x01", reduce(lambda inner, _: [inner], range(16), 1)),
        (b"\xcb" + bytes(8) + b"\x01", None),
        (b"\x92\xca" + bytes(4) + b"\x01", [None, 1]),
        (b"\x92\xcb" + bytes(8) + b"\x01", [None, 1]),
    ],
)
def test_each_form_of_messagepack(raw: bytes, value: object) -> None:
    found = packed.unpack(raw)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"", "it is cut"),
        (b"\xcd\x01", "it is cut"),
        (b"\xa2a", "it is cut"),
        (b"\x92\x01", "it is cut"),
        (b"\xca\x00\x00\x00", "it is cut"),
        (b"\xcb" + bytes(7), "it is cut"),
        (b"\xc1", "type 0xc1 is not known"),
        (b"\xc7\x00\x00", "type 0xc7 is not known"),
        (b"\xd4\x00\x00", "type 0xd4 is not known"),
        (b"\x91" * 17 + b"\x01", "it is too deep or too long"),
        (b"\x81\x01" * 17 + b"\x01", "it is too deep or too long"),
        (b"\x81" * 17 + b"\x01" * 18, "it is too deep or too long"),
    ],
)
def test_messagepack_that_is_damaged_is_refused(raw: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{problem}$"):
        packed.unpack(raw)


def test_messagepack_is_as_deep_as_sixteen() -> None:
    lists = packed.unpack(b"\x91" * 16 + b"\x01")
    tables = packed.unpack(b"\x81\x01" * 16 + b"\x01")
    for _ in range(16):
        lists, tables = lists[0], tables["1"]  # type: ignore[index,call-overload]
    assert lists == tables == 1
    assert packed.unpack(b"\x81" * 16 + b"\x01" * 17)  # the keys of tables are as deep


@pytest.mark.heavy
def test_as_many_values_as_the_most_are_taken() -> None:
    raw = b"\xdd\x00\x03\x0d\x3f" + bytes(199_999)
    assert packed.unpack(raw) == [0] * 199_999
    with pytest.raises(ValueError, match="it is too deep or too long"):
        packed.unpack(b"\xdd\x00\x03\x0d\x40" + bytes(200_000))
