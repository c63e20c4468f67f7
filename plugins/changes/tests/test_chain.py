"""Every alteration of a journal is found, and what is left of it is read."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from boot_machines import Computer
from histories import Recorder, bios
from readiness_nodes import PCI

from probe_changes import chain
from probe_changes.chain import digest, read_chain
from probe_changes.signing import proven_until, sign, verify_signature
from probe_core.commands import CommandError

LENGTH = 12
needs_openssh = pytest.mark.skipif(not which("ssh-keygen"), reason="ssh-keygen is not here")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Return the text of a journal of twelve entries, and that of its head."""
    root = tmp_path_factory.mktemp("journal")
    recorder = Recorder(root, Computer(root / "tree"))
    for number in range(LENGTH):
        bios(str(number))(recorder.computer)
        recorder.note()
    store = recorder.store
    return Path(store.path).read_text(), Path(store.head_path).read_text()


def problems(text: str, head: str) -> list[str]:
    return [problem.text for problem in read_chain(text, head).problems]


def test_a_whole_journal_has_no_problem(written: tuple[str, str]) -> None:
    journal = read_chain(*written)
    assert (journal.count, journal.problems) == (LENGTH, [])


@pytest.mark.parametrize("place", range(LENGTH))
def test_an_altered_value_is_found(written: tuple[str, str], place: int) -> None:
    text, head = written
    lines = text.splitlines()
    entry = json.loads(lines[place])
    entry["facts"]["firmware/BIOS"] = "another"
    lines[place] = chain.line_of(entry)
    assert problems("\n".join([*lines, ""]), head)


@pytest.mark.parametrize("place", range(LENGTH))
def test_a_removed_entry_is_found(written: tuple[str, str], place: int) -> None:
    text, head = written
    lines = text.splitlines()
    del lines[place]
    assert problems("\n".join([*lines, ""]), head)


@pytest.mark.parametrize("place", range(LENGTH - 1))
def test_another_order_is_found(written: tuple[str, str], place: int) -> None:
    text, head = written
    lines = text.splitlines()
    lines[place], lines[place + 1] = lines[place + 1], lines[place]
    assert problems("\n".join([*lines, ""]), head)


@pytest.mark.parametrize("kept", range(LENGTH))
def test_a_cut_end_is_found(written: tuple[str, str], kept: int) -> None:
    text, head = written
    cut = "".join(f"{line}\n" for line in text.splitlines()[:kept])
    gone = LENGTH - kept
    assert f"its end is cut: {gone} of {LENGTH} entries are gone" in problems(cut, head)


def test_a_cut_beginning_is_found(written: tuple[str, str]) -> None:
    text, head = written
    found = problems("".join(f"{line}\n" for line in text.splitlines()[3:]), head)
    assert "it begins with entry 4: what was before is gone" in found


def test_every_flipped_bit_is_found(written: tuple[str, str]) -> None:
    text, head = written
    chooser = random.Random(7)
    raw = text.encode()
    for _ in range(400):
        place = chooser.randrange(len(raw))
        altered = bytearray(raw)
        altered[place] ^= 1 << chooser.randrange(8)
        assert problems(altered.decode("utf-8", "replace"), head), place


def test_half_a_last_line_is_told_and_left_out(written: tuple[str, str]) -> None:
    text, head = written
    half = text[: len(text) - 20]
    journal = read_chain(half, head)
    assert journal.count == LENGTH - 1
    assert "its last line was not written to its end, and is left out" in problems(half, head)


@pytest.mark.parametrize("text", ["", "\n", "{}\n", "[]\n", '"x"\n', "\0\n", "{" * 9999 + "\n"])
def test_garbage_is_a_sentence(text: str) -> None:
    assert read_chain(text, "(none)").problems


def test_an_altered_anchor_is_found(
    written: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain, "MAX_ENTRIES", 6)
    lines = chain.bounded(written[0].splitlines())
    head = chain.head_of(lines)
    whole = "".join(f"{line}\n" for line in lines)
    journal = read_chain(whole, head)
    assert (len(journal.entries), journal.count, journal.problems) == (7, LENGTH, [])
    facts, _ = chain.state_of(journal.entries)
    assert facts == chain.state_of(read_chain(*written).entries)[0]
    altered = whole.replace('"firmware/BIOS":"5"', '"firmware/BIOS":"x"', 1)
    assert altered != whole
    assert "its beginning is not the one that was written" in problems(altered, head)


def test_a_journal_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "MAX_ENTRIES", 4)
    recorder = Recorder(tmp_path, Computer(tmp_path / "tree"))
    for number in range(12):
        bios(str(number))(recorder.computer)
        recorder.note()
    journal = recorder.store.read()
    assert journal.problems == []
    assert len(journal.entries) <= 5
    assert (journal.count, journal.entries[0]["kind"]) == (12, "anchor")


def test_damage_stays_told_when_the_journal_goes_on(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, Computer(tmp_path / "tree"))
    for number in range(4):
        bios(str(number))(recorder.computer)
        recorder.note()
    path = Path(recorder.store.path)
    path.write_text("".join(f"{line}\n" for line in path.read_text().splitlines()[:2]))
    bios("9")(recorder.computer)
    entry = recorder.note()
    assert entry["damaged"] == "its end is cut: 2 of 4 entries are gone"
    told = [problem.text for problem in recorder.store.read().problems]
    assert told == [
        f"found on {entry['time'][:10]}, before entry 3: its end is cut: 2 of 4 entries are gone"
    ]


def test_another_computers_journal_is_refused(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, Computer(tmp_path / "tree"))
    recorder.note()
    recorder.computer.file("/etc/machine-id", "0123456789abcdef0123456789abcdef\n")
    with pytest.raises(CommandError, match=r"another computer's; keep one for each .*XDG_STATE"):
        recorder.note()


def test_a_journal_of_a_container_without_an_id_is_of_one_computer(tmp_path: Path) -> None:
    """Each container without an id was one computer, in whichever home."""
    recorder = Recorder(tmp_path, Computer(tmp_path / "tree"))
    place = f"/proc/driver/nvidia/gpus/{PCI}/information"
    text = "GPU UUID: \t GPU-8f0c2b1a-0d5e-4f6a-9b7c-1234567890ab\n"
    recorder.computer.file("/etc/machine-id", "")
    recorder.computer.file("/.dockerenv", "")
    recorder.computer.file(place, text)
    recorder.note()
    recorder.boot()  # the GPU is the same
    recorder.note()
    recorder.computer.file(place, text.replace("8f0c", "8f0d"))
    recorder.note()  # exchanged, within one boot
    recorder.boot()
    recorder.computer.file(place, text)
    with pytest.raises(CommandError, match="of another computer, or of an earlier boot"):
        recorder.note()


def test_files_are_the_users_own(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, Computer(tmp_path / "tree"))
    recorder.note()
    modes = {p.name: p.stat().st_mode & 0o777 for p in Path(recorder.store.path).parent.iterdir()}
    assert set(modes.values()) == {0o600}
    assert {"journal.jsonl", "journal.jsonl.head", "journal.jsonl.secret"} <= modes.keys()


@needs_openssh
def test_a_signature_proves_the_end(tmp_path: Path) -> None:
    key, signers = tmp_path / "key", tmp_path / "signers"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    signers.write_text(f"ops {Path(f'{key}.pub').read_text()}")
    recorder = Recorder(tmp_path, Computer(tmp_path / "tree"))
    for number in range(3):
        bios(str(number))(recorder.computer)
        recorder.note()
    store = recorder.store
    sign(store, str(key))
    assert verify_signature(store, str(signers), "ops") is None
    assert proven_until(store, store.read()) == (3, "")
    bios("later")(recorder.computer)
    recorder.note()
    assert proven_until(store, store.read()) == (3, "")

    # Journal and head made anew without the last: only the signature tells.
    lines = Path(store.path).read_text().splitlines()
    entry = json.loads(lines[2])
    entry["facts"]["firmware/BIOS"] = "forged"
    forged = [*lines[:2], chain.line_of(entry)]
    Path(store.path).write_text("".join(f"{line}\n" for line in forged))
    Path(store.head_path).write_text(chain.head_of(forged))
    assert store.read().problems == []
    assert proven_until(store, store.read()) == (0, "entry 3 is not the one that was signed")
    assert "does not hold" in (verify_signature(store, str(signers), "somebody") or "")
    Path(store.signed_path).write_text(chain.head_of(forged))
    assert "does not hold" in (verify_signature(store, str(signers), "ops") or "")


@needs_openssh
def test_a_key_that_is_none_is_a_sentence(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, Computer(tmp_path / "tree"))
    recorder.note()
    with pytest.raises(CommandError, match="ssh-keygen did not sign: "):
        sign(recorder.store, str(tmp_path / "none"))
    assert not Path(recorder.store.signature_path).exists()


def test_one_line_is_one_hash() -> None:
    entry: Any = {"b": "\u00e9", "a": [1, {"d": None, "c": "x y"}]}
    assert chain.line_of(entry) == '{"a":[1,{"c":"x y","d":null}],"b":"\\u00e9"}'
    assert digest("x") == "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (LENGTH - 2, f"entry {LENGTH} is not the last that was written, or was changed"),
        (LENGTH, f"entry {LENGTH} is not the last that was written, or was changed"),
        (LENGTH + 1, f"its end is cut: 1 of {LENGTH + 1} entries are gone"),
        (999_999_999, f"its end is cut: {999_999_999 - LENGTH} of 999999999 entries are gone"),
        (1_000_000_000, f"entry {LENGTH} is not the last that was written, or was changed"),
        ("many", f"entry {LENGTH} is not the last that was written, or was changed"),
    ],
)
def test_a_head_of_another_journal(count: object, text: str, written: tuple[str, str]) -> None:
    journal, head = written
    _, _, first = head.split()
    assert problems(journal, f"{count} {'0' * 64} {first}\n") == [text]
