"""What an image starts: the program of Entrypoint and Cmd, or what a script of theirs names."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from probe_wheels.images.config import Config
    from probe_wheels.images.layers import Binary, Read
    from probe_wheels.images.tree import Tree
    from probe_wheels.images.view import ImageFiles

MAX_HOPS = 8
"""Scripts that start scripts, before the program."""

_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Program:
    """What an image starts: its path, what the loader needs of it, and why it cannot be told.

    `hops` are the files that are executed for it: scripts, and then itself.
    """

    def __init__(self, path: str, hops: list[str]) -> None:
        self.path = path
        self.hops = hops
        self.binary: Binary | None = None
        self.missing = False
        self.problem: str | None = None


def path_of(environ: Mapping[str, str]) -> list[str]:
    """Return the folders in which an image looks for programs."""
    return (environ.get("PATH") or _DEFAULT_PATH).split(":")


def program_of(files: ImageFiles, config: Config) -> Program | None:
    """Return what the image starts; through scripts the interpreter. None: it names nothing."""
    words = config.program
    if not words:
        return None
    path, hops = words[0], list[str]()
    for _ in range(MAX_HOPS):
        found = _located(files.tree, path, config)
        program = Program(found or path, hops)
        if found is None:
            program.missing = True
            return program
        hops.append(found)
        file = files.tree.file(found.lstrip("/"))
        read = files.read(file) if file else None
        if read is None:
            program.problem = "its content was not kept"
            return program
        if read.head.startswith(b"#!"):
            path = _interpreter(read)
            continue
        program.binary = read.binary
        if read.binary is None:
            program.problem = read.document.get("problem") or "it is no program for 64 bits"
        return program
    program.problem = "its scripts start each other"
    return program


def _located(tree: Tree, name: str, config: Config) -> str | None:
    """Return the absolute path of a program; None where the image has none of that name."""
    if "/" in name:
        path = tree.resolve(name if name.startswith("/") else f"{config.folder}/{name}")
        return f"/{path}" if tree.file(path) else None
    for folder in path_of(config.environ):
        if folder and tree.file(f"{folder.strip('/')}/{name}"):
            return f"/{folder.strip('/')}/{name}"
    return None


def _interpreter(read: Read) -> str:
    """Return what a script's first line names: its interpreter, behind `env` the program."""
    # Linux cuts spaces and tabs, and takes a carriage return for a part of the name.
    line = read.head[2:].partition(b"\n")[0].decode("utf-8", "replace").replace("\t", " ")
    words = [word for word in line.split(" ") if word]
    if not words:
        return "/bin/sh"
    if words[0].endswith("/env"):
        return next((w for w in words[1:] if not w.startswith("-") and "=" not in w), "env")
    return words[0]
