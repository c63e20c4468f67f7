"""Each sub-command through `main`: that it is wired to its function, and what it prints."""

import re
from pathlib import Path

import pytest

from probe_chipdb import __main__ as commands
from probe_chipdb.database import Database

Capture = pytest.CaptureFixture[str]

# Command line, exit status, what it prints; DATA is the small data set, OUT a folder that is not
# there, LIST and TABLE files of others.
RUNS = {
    "check": ("check DATA", 0, "7 chips (6 with peaks), 4 architectures; "),
    "new": ("new gamma-chips --into OUT", 0, "next: edit "),
    "build": ("build DATA --into OUT", 0, ""),
    "diff": ("diff DATA DATA", 0, ""),
    "schema": ("schema OUT", 0, "chips.schema.json"),
    "export": ("export OUT", 0, "hardware.ts"),
    "audit": ("audit TABLE --dtype fp16", 1, "Acme Fast 1"),
    "site": ("site OUT", 0, "files; open "),
    "notes": ("notes DATA DATA --version 2027.1.0", 0, "2027.1.0"),
    "stale": ("stale LIST", 1, "list.txt: 1 entries, 1 not in the table"),
    "missing": ("missing", 0, "# "),
    "unread": ("unread", 0, "# "),
    "compare": ("compare OTHERS", 0, "# Other tables of peaks"),
    "pages": ("pages OUT", 0, " pages in OUT"),
}


def listed(capsys: Capture) -> set[str]:
    with pytest.raises(SystemExit):
        commands.main(["--help"])
    return set(re.findall(r"^    ([a-z]+) ", capsys.readouterr().out, re.MULTILINE))


def test_every_command_is_run_below(capsys: Capture) -> None:
    assert listed(capsys) == set(RUNS)


@pytest.mark.heavy
@pytest.mark.parametrize("name", RUNS)
def test_a_command_is_wired_to_its_function(
    name: str,
    data: Path,
    db: Database,
    tmp_path: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(commands, "_open", lambda: db)
    (tmp_path / "table.json").write_text('{"Acme Fast 1": 1}')
    (tmp_path / "list.txt").write_text("sm_999\n")
    (tmp_path / "others").mkdir()
    words = {
        "DATA": str(data),
        "OUT": str(tmp_path / "out"),
        "LIST": str(tmp_path / "list.txt"),
        "TABLE": str(tmp_path / "table.json"),
        "OTHERS": str(tmp_path / "others"),
    }
    line, status, printed = RUNS[name]
    assert commands.main([words.get(word, word) for word in line.split()]) == status
    captured = capsys.readouterr()
    for word, path in words.items():
        printed = printed.replace(word, path)
    assert printed in captured.out + captured.err
    assert bool(captured.out + captured.err) == bool(printed)
    if " OUT" in line:
        assert any((tmp_path / "out").rglob("*.*"))
