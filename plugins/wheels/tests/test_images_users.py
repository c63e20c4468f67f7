"""Who an image runs as: names that are not there, and programs that its user may not start."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import image_files as make
import pytest
from test_images_limits import node

from probe_wheels.images.answers import Answer, answer_of
from probe_wheels.images.contents import contents_of
from probe_wheels.images.image import Opening
from probe_wheels.images.sources import open_images

BASE = make.base()
SERVE = BASE["usr/bin/serve"]


def owned(files: dict[str, tuple[bytes | None, int, int, int]]) -> bytes:
    """A layer of files, and of folders where there is no content: mode, user and group."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path, (raw, mode, uid, gid) in files.items():
            info = tarfile.TarInfo(path)
            info.mode, info.uid, info.gid = mode, uid, gid
            info.type = tarfile.DIRTYPE if raw is None else tarfile.REGTYPE
            info.size = len(raw or b"")
            archive.addfile(info, io.BytesIO(raw or b""))
    return buffer.getvalue()


def answer(path: Path, config: dict[str, object], *layers: bytes) -> Answer:
    opening = Opening()
    saved = make.saved(path, config, [make.layer(BASE), *layers])
    found = answer_of(contents_of(open_images(str(saved), opening)[0]), node("cpu"))
    opening.close()
    return found


def told(path: Path, config: dict[str, object], *layers: bytes) -> tuple[str, str]:
    found = answer(path, config, *layers)
    return found.word, found.step.name if found.step else ""


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ("", ("runs", "")),
        ("root", ("runs", "")),
        ("app", ("runs", "")),
        ("1234:5678", ("runs", "")),
        ("app:video", ("runs", "")),
        # No engine starts a name that is not there (moby/sys/user, GetExecUser).
        ("trainer", ("no", "user")),
        ("1000:trainers", ("no", "user")),
    ],
)
def test_a_name_must_be_in_the_image(user: str, expected: tuple[str, str], tmp_path: Path) -> None:
    assert told(tmp_path / "a.tar", make.config(User=user)) == expected


@pytest.mark.parametrize(
    ("user", "mode", "uid", "gid", "expected"),
    [
        ("", 0o700, 0, 0, ("runs", "")),
        ("0", 0o700, 0, 0, ("runs", "")),
        ("1000", 0o700, 0, 0, ("no", "user")),
        ("1000", 0o755, 0, 0, ("runs", "")),
        ("1000", 0o700, 1000, 0, ("runs", "")),
        ("app", 0o750, 0, 1000, ("runs", "")),
        ("app", 0o750, 0, 109, ("runs", "")),  # /etc/group lists it in render
        ("app", 0o750, 0, 110, ("no", "user")),
        ("4321", 0o750, 0, 0, ("runs", "")),  # a number that nothing lists is of group 0
        ("4321:7", 0o750, 0, 0, ("no", "user")),
        ("1000", 0o607, 1000, 0, ("no", "user")),  # the owner is none of the others
    ],
)
def test_the_user_must_be_allowed_to_execute_the_program(
    user: str, mode: int, uid: int, gid: int, expected: tuple[str, str], tmp_path: Path
) -> None:
    assert isinstance(SERVE, bytes)
    config = make.config(User=user, Cmd=["/app/serve"])
    file = {"app/serve": (SERVE, mode, uid, gid)}
    assert told(tmp_path / "a.tar", config, owned(file)) == expected
    # A folder that is closed keeps it from the program as well.
    inner = {"app": (None, mode, uid, gid), "app/serve": (SERVE, 0o755, 0, 0)}
    assert told(tmp_path / "b.tar", config, owned(inner)) == expected


def test_an_upper_layer_opens_a_folder_and_a_link_leads_into_one(tmp_path: Path) -> None:
    assert isinstance(SERVE, bytes)
    config = make.config(User="1000", Cmd=["/usr/bin/tool"])
    lower = owned({"srv": (None, 0o700, 0, 0), "srv/tool": (SERVE, 0o755, 0, 0)})
    link = make.layer({"usr/bin/tool": make.link("/srv/tool")})
    opened = owned({"srv": (None, 0o755, 0, 0)})
    assert told(tmp_path / "a.tar", config, lower, link) == ("no", "user")
    assert told(tmp_path / "b.tar", config, lower, link, opened) == ("runs", "")
    assert told(tmp_path / "c.tar", config, opened, lower, link) == ("no", "user")


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("#!/usr/bin/serve\n", "runs"),
        ("#! \t/usr/bin/serve \n", "runs"),
        ("#!/usr/bin/serve\r\n", "no"),
        ("#!/usr/bin/env serve\r\n", "no"),
    ],
)
def test_a_carriage_return_is_a_part_of_the_interpreters_name(
    line: str, word: str, tmp_path: Path
) -> None:
    """Linux cuts spaces and tabs alone (fs/binfmt_script.c)."""
    files = make.layer({"entry.sh": line, "usr/bin/env": SERVE})
    config = make.config(Entrypoint=["/entry.sh"], Cmd=None)
    found = answer(tmp_path / "a.tar", config, files)
    # The character itself cannot be seen in a sentence.
    is_named = found.step is not None and "ends in a carriage return" in found.step.reason
    assert (found.word, is_named) == (word, word == "no")


def test_the_folder_where_it_starts_is_no_file(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    assert told(path, make.config(WorkingDir="/usr/bin/serve")) == ("no", "loader")
    assert told(path, make.config(WorkingDir="/usr/bin")) == ("runs", "")
