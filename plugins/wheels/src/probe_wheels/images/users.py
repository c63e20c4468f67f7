"""Who an image runs as, and whether that user may start its program."""

from __future__ import annotations

from probe_wheels.images.steps import NO, Step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from probe_wheels.images.contents import Contents

_PACKED = ("archive", "layout")
"""Kinds whose files have the owners that a container sees; Apptainer runs as who starts it."""


def user_steps(contents: Contents) -> Iterator[Step]:
    """Yield what keeps the image's user from its program.

    Numbers pass, and names must be in the image's files (moby/sys/user, GetExecUser).
    """
    if contents.image.kind not in _PACKED:
        return
    user, _, group = contents.image.config.user.partition(":")
    for name, path in ((user, "/etc/passwd"), (group, "/etc/group")):
        text = contents.files.text(path)
        listed = {row[0] for row in _rows(text)}
        if not text and contents.files.is_file(path):
            continue  # it could not be read
        if name not in ("", "root") and not name.isdecimal() and name not in listed:
            kind = "user" if path == "/etc/passwd" else "group"
            reason = f"its {kind} {name} is not in its {path}: no engine starts it"
            yield Step("user", NO, reason, "User", f"add the {kind} to the image, or give a number")
            return
    yield from _permissions(contents, user, group)


def _permissions(contents: Contents, user: str, group: str) -> Iterator[Step]:
    """Yield the first file or folder on the way to the program that its user may not use."""
    rows = _rows(contents.files.text("/etc/passwd"))
    row = next((row for row in rows if len(row) > 3 and user in (row[0], row[2])), None)
    uid = _number(user) if row is None else _number(row[2])
    if user in ("", "root") or not uid or contents.program is None:
        return
    own, listed = groups_of(contents, user, group)
    groups = own | listed | (set() if row or group else {0})
    tree = contents.files.tree
    for path in contents.program.hops:
        real = tree.resolve(path)
        folders = [real[:at] for at, char in enumerate(real) if char == "/"]
        owners = [(folder, tree.closed.get(folder)) for folder in folders]
        file = tree.file(real)
        owners += [(real, (file.mode, file.uid, file.gid))] if file else []
        for place, owner in owners:
            if owner is not None and not _may(owner, uid, groups):
                reason = f"its user {user} may not execute {path}: /{place} is for others"
                fix = "let it be executed by all (chmod o+x), or run it as another user"
                yield Step("user", NO, reason, contents.place(path), fix)
                return


def _may(owner: tuple[int, int, int], uid: int, groups: set[int]) -> bool:
    """Return whether a user may execute a file, or search a folder (execve(2), EACCES)."""
    mode, of_user, of_group = owner
    shift = 6 if uid == of_user else 3 if of_group in groups else 0
    return bool(mode >> shift & 1)


def groups_of(contents: Contents, user: str, group: str) -> tuple[set[int], set[int]]:
    """Return the numbers of a user's own group, and of those that list it, by the image's files."""
    own, name, listed = [_number(group)], user, []
    for row in _rows(contents.files.text("/etc/passwd")):
        if len(row) > 3 and user in (row[0], row[2]):
            name = row[0]
            own += [] if group else [_number(row[3])]
            break
    for row in _rows(contents.files.text("/etc/group")):
        if len(row) > 3 and group == row[0]:
            own.append(_number(row[2]))
        elif len(row) > 3 and name in row[3].split(","):
            listed.append(_number(row[2]))
    return {n for n in own if n is not None}, {n for n in listed if n is not None}


def _number(text: str) -> int | None:
    """Return a group's number of 32 bits; None for anything else."""
    return int(text) if text.isdecimal() and len(text) < 11 else None


def _rows(text: str) -> list[list[str]]:
    return [line.split(":") for line in text.splitlines()[:4096]]
