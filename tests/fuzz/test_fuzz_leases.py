"""Lock files and variables that other users and outer processes wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from foreign import CHANCES, Chance, encoded
from hypothesis import given

from probe_core.cli import main
from probe_core.leasing.folder import Folder
from probe_core.leasing.listing import holdings
from probe_core.leasing.ranges import (
    OUTER_LEASE,
    key_of,
    outer_lease,
    outer_lease_value,
    try_lock,
)

RECORD = (
    b"pid 1\nstarted 5\npidns 4026531836\nsince 1763730000.0\nshare 0\nreserve 5\nmark a\n"
    b"command x\ndevice pci:0000:01:00.0\nwhole y\n"
)
WORDS = "0 1;pci:0000:01:00.0,uuid:GPU-1 ; 99; 100; ,".split()


@pytest.mark.heavy
@given(CHANCES)
def test_records(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    chance: Chance,
) -> None:
    monkeypatch.setenv("PROBE_LEASES", str(tmp_path))
    (tmp_path / "records").mkdir(exist_ok=True)
    path = tmp_path / "records" / "a1"
    path.write_bytes(chance.mutate(RECORD, RECORD * 2, RECORD.replace(b"share 0", b"share 1")))
    with open(path, "r+b") as handle:
        assert try_lock(handle.fileno(), 0, 1)
        folder = Folder(str(tmp_path))
        found = [h.doc for h in holdings(folder)]
        folder.close()
        assert main(["leases"]) == 0
    json.dumps(found, allow_nan=False)
    assert all(one["command"].isprintable() for one in found)
    assert all(one["device"].isprintable() for one in found)
    assert all(line.isprintable() for line in capsys.readouterr().out.splitlines())


@given(CHANCES)
def test_what_an_outer_lease_gave(chance: Chance) -> None:
    environ = {OUTER_LEASE: chance.words(WORDS, "")}
    outer = outer_lease(environ)
    assert all(0 < depth < 100 for depth in outer.values())
    device: Any = {"id": "pci:0000:01:00.0", "ids": ["pci:0000:01:00.0"], "parent": None}
    assert key_of(device, [device], outer).own.startswith("pci:0000:01:00.0")
    encoded(outer_lease_value(environ, [device]))
