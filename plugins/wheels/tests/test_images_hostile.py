"""Images that are broken or mean: one sentence, nothing written, nothing followed."""

from __future__ import annotations

import json
import os
import random
import struct
import tarfile
import time
from pathlib import Path

import image_files as make
import pytest
from test_images_answers import BASE, CU128, RECORDINGS, nodes, split
from test_images_formats import sif
from weights import mostly_heavy

from probe_core.cli import main
from probe_wheels.files import Budget, Exhausted
from probe_wheels.images import streams
from probe_wheels.images.answers import answer_of
from probe_wheels.images.contents import contents_of
from probe_wheels.images.image import Opening
from probe_wheels.images.layers import memory, scan
from probe_wheels.images.sources import open_images
from probe_wheels.images.streams import BadImage, source_of

FILES: dict[str, make.Content] = {**BASE, **make.torch(CU128, "12.8")}
LAYERS = split(FILES)
CONFIG = make.config()


def sentence_of(path: Path) -> str:
    """What is wrong with an image; its answer is unknown on every node then."""
    opening = Opening()
    try:
        contents = contents_of(open_images(str(path), opening)[0])
    except BadImage as error:
        return str(error)
    finally:
        opening.close()
    assert contents.problems
    assert {answer_of(contents, node).word for node in nodes().values()} == {"unknown"}
    return contents.problems[0]


def raw_layer(*members: tuple[str, bytes, bytes, str]) -> bytes:
    """A layer of members as given: name, type, bytes, target."""
    buffer = make.io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, kind, raw, target in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size = kind, target, len(raw)
            tar.addfile(info, make.io.BytesIO(raw))
    return buffer.getvalue()


REG, SYM, LNK = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE
BAD_LAYERS: dict[str, tuple[bytes, str]] = {
    "climbs": (raw_layer(("../../etc/x.so", REG, b"x", "")), "climbs out"),
    "climbs in the middle": (raw_layer(("usr/../../x.so", REG, b"x", "")), "climbs out"),
    "hard link climbs": (raw_layer(("x.so", LNK, b"", "../../etc/shadow")), "climbs out"),
    "whiteout without a name": (raw_layer(("a/.wh.", REG, b"", "")), "whiteout without a name"),
    "no tar": (b"hello" * 300, "no tar archive"),
    "empty": (b"", "no tar archive"),
    "cut": (LAYERS[1][: len(LAYERS[1]) // 2 // 512 * 512], "cut off"),
    "cut in a header": (LAYERS[1][:700], "cut off"),
    "cut gzip": (make.gz(LAYERS[1])[:-20], "cut off"),
    "damaged gzip": (b"\x1f\x8b\x08" + b"\xff" * 900, "damaged"),
    "cut zstd": (b"\x28\xb5\x2f\xfd\x60" + struct.pack("<H", 9000) + b"\x00\x00", "cut off"),
    "xz": (b"\xfd7zXZ\0" + b"x" * 600, "xz"),
    "bzip2": (b"BZh9" + b"x" * 600, "bzip2"),
    "too deep": (raw_layer(("a/" * 300 + "x.so", REG, b"x", "")), "longer than"),
}


@pytest.mark.parametrize("case", BAD_LAYERS)
def test_a_bad_layer_makes_every_answer_unknown(case: str, tmp_path: Path) -> None:
    raw, words = BAD_LAYERS[case]
    path = make.saved(tmp_path / "a.tar", CONFIG, [LAYERS[0], raw])
    before = sorted(os.listdir(tmp_path))
    sentence = sentence_of(path)
    assert words in sentence
    assert sentence.startswith("layer 2")
    assert "\n" not in sentence
    assert sorted(os.listdir(tmp_path)) == before


def saved_with(path: Path, manifest: object, **files: bytes) -> Path:
    listed = {name.replace("_json", ".json"): raw for name, raw in files.items()}
    return make.archive(path, {**listed, "manifest.json": json.dumps(manifest).encode()})


ENTRY = {"Config": "c.json", "RepoTags": ["a:1"], "Layers": []}


@pytest.mark.parametrize(
    ("manifest", "config", "words"),
    [
        ([ENTRY], b"", "config"),
        ([ENTRY], b"{}", "no container image"),
        ([ENTRY], b"[1]", "no container image"),
        ([ENTRY], b"[" * 100_000, "no JSON"),
        ([ENTRY], b'{"architecture": "amd64", "config": 5}', "no container image"),
        ([{**ENTRY, "Config": None}], b"{}", "names no config"),
        ([{**ENTRY, "Config": "../../etc/passwd"}], b"{}", "climbs out"),
        ([{**ENTRY, "Layers": 5}], b'{"rootfs": {}}', "no list"),
        ([{**ENTRY, "Layers": ["gone.tar"]}], b'{"rootfs": {}}', "layer 1 is not in it"),
        ([{**ENTRY, "Layers": [None]}], b'{"rootfs": {}}', "layer 1 is not in it"),
        ([{**ENTRY, "Layers": ["x"] * 2000}], b'{"rootfs": {}}', "at most 1000 layers"),
        ([ENTRY, {**ENTRY, "RepoTags": ["b:1"]}], b'{"rootfs": {}}', "take --image"),
        ([], b"", "no image is in it"),
    ],
)
def test_a_bad_manifest_ends_with_one_sentence(
    manifest: object, config: bytes, words: str, tmp_path: Path
) -> None:
    assert words in sentence_of(saved_with(tmp_path / "a.tar", manifest, c_json=config))


def changed(files: dict[str, bytes], old: bytes, new: bytes) -> dict[str, bytes]:
    """A layout whose manifests were changed, with the digests of the new ones."""
    out, names = dict(files), {}
    for _ in range(3):
        for name in [name for name in out if name.startswith("blobs/")]:
            raw = out[name].replace(old, new)
            for was, now in names.items():
                raw = raw.replace(was.encode(), now.encode())
            value = make.hashlib.sha256(raw).hexdigest()
            if raw != out[name]:
                names[name.rpartition("/")[2]] = value
                del out[name]
                out[f"blobs/sha256/{value}"] = raw
    raw = out["index.json"]
    for was, now in names.items():
        raw = raw.replace(was.encode(), now.encode())
    return {**out, "index.json": raw}


LAYER = b"application/vnd.oci.image.layer.v1.tar"
CHANGES = {
    "encrypted": (LAYER, LAYER + b"+gzip+encrypted", "layer 1 is encrypted"),
    "schema 1": (b'{"schemaVersion": 2, "config"', b'{"schemaVersion": 1, "config"', "schema 1"),
    "digest": (b'"digest": "sha256:', b'"digest": "../../', "by something else than a digest"),
}


@pytest.mark.parametrize("case", CHANGES)
def test_what_no_engine_takes_ends_with_one_sentence(case: str, tmp_path: Path) -> None:
    old, new, words = CHANGES[case]
    files = changed(make.layout([(CONFIG, LAYERS)]), old, new)
    assert words in sentence_of(make.folder(tmp_path / "oci", files))


def test_a_chart_is_no_image(tmp_path: Path) -> None:
    files = make.layout([({"name": "chart", "version": "1"}, LAYERS)])
    assert "no container image" in sentence_of(make.folder(tmp_path / "oci", files))


def test_a_layer_that_may_not_be_passed_on_is_said_to_be_absent(tmp_path: Path) -> None:
    media = "application/vnd.oci.image.layer.nondistributable.v1.tar"
    files = make.layout([(CONFIG, LAYERS)], media, absent=[0])
    assert "layer 1 is not in it: it is one" in sentence_of(make.folder(tmp_path / "oci", files))


def test_links_of_a_layout_are_not_followed(tmp_path: Path) -> None:
    path = make.folder(tmp_path / "oci", make.layout([(CONFIG, LAYERS)]))
    blobs = path / "blobs" / "sha256"
    blobs.rename(tmp_path / "elsewhere")
    blobs.symlink_to(tmp_path / "elsewhere")
    assert "links are not followed" in sentence_of(path)


def test_a_bomb_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "FREE_OUTPUT", 1 << 20)
    monkeypatch.setattr(streams, "MAX_RATIO", 100)
    raw = make.gz(make.layer({"a.so": bytes(32 << 20)}))
    assert "bomb" in sentence_of(make.saved(tmp_path / "a.tar", CONFIG, [raw]))
    monkeypatch.setattr(streams, "MAX_LAYER", 1 << 20)
    assert "GiB" in sentence_of(make.saved(tmp_path / "b.tar", CONFIG, [raw]))


def test_a_small_layer_of_zeros_and_a_large_one_of_noise_are_no_bombs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "FREE_OUTPUT", 1 << 20)
    monkeypatch.setattr(streams, "MAX_RATIO", 100)
    for raw in (bytes(1 << 20), os.urandom(2 << 20)):
        assert source_of(memory(make.gz(raw)), Budget()).read(4 << 20) == raw


def test_what_is_unpacked_is_read_and_passed_over_across_its_pieces() -> None:
    source = streams.Unpacked(iter([b"abc", b"defg", b"hi", b"j"]))
    assert [source.read(2), source.read(3), source.skip(1), source.read(1)] == [
        b"ab", b"cde", True, b"g"
    ]  # fmt: skip
    assert [source.read(0), source.skip(2), source.read(9), source.skip(1), source.read(1)] == [
        b"", True, b"j", False, b""
    ]  # fmt: skip
    assert source.part(1) is None


def test_devices_and_links_out_are_passed_over(tmp_path: Path) -> None:
    """Base images have /dev/null; a link that leads out leads to nothing of the image."""
    kinds = [(f"dev/{number}", bytes([48 + number]), b"", "") for number in (3, 4, 6)]
    odd = raw_layer(*kinds, ("usr/lib/a.so", SYM, b"", "../../../../proc/kcore"))
    path = make.saved(tmp_path / "a.tar", CONFIG, [*LAYERS, odd])
    opening = Opening()
    contents = contents_of(open_images(str(path), opening)[0])
    opening.close()
    assert not contents.problems
    assert not contents.files.is_file("/usr/lib/a.so")


def test_time_is_bounded() -> None:
    raw = make.gz(make.layer({"a.so": os.urandom(3 << 20)}))
    budget = Budget(-1.0)
    with pytest.raises(Exhausted):
        scan(source_of(memory(raw), budget), "layer", budget)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (sif(b"x" * 64, filesystem=5), "encrypted"),
        (sif(b"x" * 64, filesystem=2), "no squashfs"),
        (sif(b"x" * 64, kind=0x400A), "OCI image"),
        (sif(b"x" * 64, kind=0x4001), "without a root"),
        (sif(b"x" * 64)[:200], "cut off"),
        (sif(b"x" * 64)[:-10], "cut off"),
    ],
)
def test_a_bad_sif_ends_with_one_sentence(raw: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "a.sif").write_bytes(raw)
    assert words in sentence_of(tmp_path / "a.sif")


def test_without_unsquashfs_a_sif_is_said_to_need_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "a.sif").write_bytes(sif(b"x" * 64))
    assert "unsquashfs (squashfs-tools) is not here" in sentence_of(tmp_path / "a.sif")


def test_what_is_no_image_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("hello\n")
    os.mkfifo(tmp_path / "fifo")
    assert "no image, root or Python environment" in sentence_of(tmp_path / "empty")
    assert "no tar archive" in sentence_of(tmp_path / "text")
    assert "no regular file" in sentence_of(tmp_path / "fifo")
    assert "neither manifest.json nor index.json" in sentence_of(
        make.archive(tmp_path / "a.tar", {"a": b"b"})
    )


def test_every_cut_of_an_image_ends_with_one_sentence(tmp_path: Path) -> None:
    whole = make.saved(
        tmp_path / "whole.tar", CONFIG, [make.gz(raw) for raw in LAYERS]
    ).read_bytes()
    path = tmp_path / "a.tar"
    for at in range(0, len(whole) - 10240, max(1, len(whole) // 60)):
        path.write_bytes(whole[:at])
        assert "\n" not in sentence_of(path)


def test_text_of_an_image_does_nothing_to_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = make.config(Cmd=["\x1b[2J\u202eevil"], User="9" * 5000)
    path = make.saved(tmp_path / "a.tar", config, LAYERS)
    node = tmp_path / "node.json"
    node.write_text(json.dumps(RECORDINGS["mi300x-6.4"]))
    assert main(["will-run", str(path), "--on", str(node)]) == 1
    out = capsys.readouterr().out
    assert "is not in it" in out
    assert "\x1b" not in out
    assert "\u202e" not in out


def test_a_user_of_any_number_is_judged(tmp_path: Path) -> None:
    config = make.config(User="9" * 5000 + ":" + "8" * 5000)
    files = {**BASE, **make.rocm_torch("gfx942", "7.0")}
    opening = Opening()
    path = make.saved(tmp_path / "a.tar", config, [make.layer(files)])
    contents = contents_of(open_images(str(path), opening)[0])
    assert answer_of(contents, nodes()["mi300x-6.4"]).word == "no"
    opening.close()


def test_other_members_of_an_archive_are_passed_over(tmp_path: Path) -> None:
    """A type of GNU's own, with bytes, between the parts of an image."""
    whole = make.saved(tmp_path / "a.tar", CONFIG, [make.gz(raw) for raw in LAYERS]).read_bytes()
    odd = raw_layer(("odd", b"V", b"x" * 700, ""))[:1536]
    (tmp_path / "a.tar").write_bytes(odd + whole)
    opening = Opening()
    contents = contents_of(open_images(str(tmp_path / "a.tar"), opening)[0])
    opening.close()
    assert not contents.problems
    assert [document["name"] for document in contents.documents] == ["torch"]


def test_texts_are_kept_within_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("probe_wheels.files.MAX_ROOM", 100)
    layers = [make.gz(raw) for raw in LAYERS]
    opening = Opening()
    path = make.saved(tmp_path / "a.tar", CONFIG, layers)
    contents = contents_of(open_images(str(path), opening)[0])
    opening.close()
    assert opening.budget.room >= 0
    # Without its list of files the folders of a package are walked.
    assert [list(document["files"]) for document in contents.documents] == [
        ["torch/lib/libtorch_cuda.so"]
    ]


# Mutations: one sentence or an answer, nothing written, nothing opened but the image, in seconds.

SMALL = split({**BASE, **make.torch("sm_80 sm_90", "12.8", count=3)})
MUTATED = ("saved", "saved, packed layers", "layout", "packed archive", "SIF")
MUTATIONS = 60


def small(form: str, path: Path) -> bytes:
    """A small image in one file."""
    packed = [make.gz(raw, 2) for raw in SMALL]
    if form == "SIF":
        return sif(os.urandom(2048))
    if form == "layout":
        files = make.layout([(CONFIG, packed), (make.config(arch="arm64"), packed)])
        return make.archive(path, files).read_bytes()
    layers = packed if form == "saved, packed layers" else SMALL
    raw = make.saved(path, CONFIG, layers).read_bytes()
    return make.gz(raw) if form == "packed archive" else raw


def mutated(raw: bytes, source: random.Random) -> bytes:
    """The bytes with some changed: bits, limits of numbers, pieces cut out, doubled or moved."""
    changed = bytearray(raw)
    for _ in range(source.choice((1, 1, 2, 8))):
        at, length = source.randrange(len(changed)), source.choice((1, 4, 8, 512, 4096))
        piece = bytes(changed[at : at + length])
        other = source.randrange(len(changed))
        match source.randrange(6):
            case 0:
                changed[at] ^= 1 << source.randrange(8)
            case 1:
                changed[at : at + length] = source.choice((b"\xff", b"\0", b"7")) * len(piece)
            case 2:
                del changed[at : at + length]
            case 3:
                changed[at:at] = piece
            case 4:
                changed[other : other + length] = piece
            case _:
                changed[at:] = b""
        if len(changed) < 2:
            return bytes(changed)
    return bytes(changed)


@pytest.mark.parametrize("form", mostly_heavy(MUTATED, 5))
def test_mutations_end_with_one_sentence_or_an_answer(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw, source = small(form, tmp_path / "a.tar"), random.Random(form)
    path, opened, places = tmp_path / "a.tar", set(), nodes().values()
    real = os.open

    def noted(name: str, *more: int) -> int:
        opened.add(os.path.realpath(name))
        return real(name, *more)

    monkeypatch.setattr("probe_wheels.files.os.open", noted)
    for number in range(MUTATIONS):
        path.write_bytes(mutated(raw, source))
        start, opening = time.process_time(), Opening()
        try:
            contents = [contents_of(image) for image in open_images(str(path), opening)]
            words = {answer_of(found, place).word for found in contents for place in places}
            sentences = [problem for found in contents for problem in found.problems]
        except (BadImage, Exhausted) as error:
            words, sentences = set(), [str(error)]
        finally:
            opening.close()
        assert words <= {"runs", "less", "no", "unknown"}, number
        assert all(text and "\n" not in text for text in sentences), number
        assert time.process_time() - start < 20.0, number
    assert opened - {os.devnull} == {os.path.realpath(path)}  # unsquashfs reads nothing else
    assert os.listdir(tmp_path) == ["a.tar"]
