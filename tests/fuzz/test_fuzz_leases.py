"""Lock files and variables that other users and outer processes wrote."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any

import pytest
from foreign import CHANCES, Chance, encoded
from hypothesis import given

from probe_core.cli import main
from probe_core.leasing import listing
from probe_core.leasing.folder import (
    OUTER_LEASE,
    Folder,
    file_name,
    key_of,
    outer_lease,
    outer_lease_value,
)
from probe_core.leasing.listing import leases

RECORD = b"pid 1\nstarted 5\npidns 4026531836\nuid 0\nsince 1763730000.0\nshare 0\ncommand x\n\n"
WORDS = "0 1;pci:0000:01:00.0,uuid:GPU-1 ; 99; 100; ,".split()


@given(CHANCES)
def test_records(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    chance: Chance,
) -> None:
    monkeypatch.setenv("PROBE_LEASES", str(tmp_path))
    monkeypatch.setattr(listing, "_ENDING_S", 0.0)  # the lock's holder never ends
    path = tmp_path / "pci:0000:01:00.0.lock"
    path.write_bytes(chance.mutate(RECORD, RECORD * 2, RECORD.replace(b"share 0", b"share 1")))
    with open(path, "rb") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        folder = Folder(str(tmp_path))
        found = leases(folder)
        folder.close()
        assert main(["leases"]) == 0
    json.dumps(found, allow_nan=False)
    assert all(one["command"].isprintable() for one in found)
    assert all(line.isprintable() for line in capsys.readouterr().out.splitlines())


@given(CHANCES)
def test_names_of_lock_files(chance: Chance) -> None:
    name = file_name("." + chance.words(["pci:0000:01:00.0", "dt:/soc/gpu", "."], ""))
    assert len(os.fsencode(name)) < 256
    assert "/" not in name
    assert not name.startswith(".")


@given(CHANCES)
def test_what_an_outer_lease_gave(chance: Chance) -> None:
    environ = {OUTER_LEASE: chance.words(WORDS, "")}
    outer = outer_lease(environ)
    assert all(0 < depth < 100 for depth in outer.values())
    device: Any = {"id": "pci:0000:01:00.0", "ids": ["pci:0000:01:00.0"], "parent": None}
    assert key_of(device, [device], outer).own.endswith(".lock")
    encoded(outer_lease_value(environ, [device]))
