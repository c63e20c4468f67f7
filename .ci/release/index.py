"""A package index on loopback (PEP 503) for rehearsals: a folder of files."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from html import escape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import copyfile
from threading import Thread

import checks

_NAME = re.compile(r"[-_.]+")
_FORMS = {".whl": checks.wheel_files, ".gz": checks.sdist_files}


def lay(files: list[Path], into: Path) -> None:
    """Write the pages of an index of these wheels and sdists, and copy the files beside them."""
    projects: dict[str, list[Path]] = {}
    for path in files:
        name = path.name.split("-")[0] if path.suffix == ".whl" else path.name.rpartition("-")[0]
        folder = into / _NAME.sub("-", name).lower()
        folder.mkdir(parents=True, exist_ok=True)
        copyfile(path, folder / path.name)
        projects.setdefault(folder.name, []).append(path)
    for name, found in projects.items():
        page = "".join(_link(path) for path in sorted(set(found)))
        (into / name / "index.html").write_text(f"<!DOCTYPE html>\n{page}", "utf-8")
    names = "".join(f'<a href="{name}/">{name}</a>\n' for name in sorted(projects))
    (into / "index.html").write_text(f"<!DOCTYPE html>\n{names}", "utf-8")


def _link(path: Path) -> str:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    python = checks.metadata(_FORMS[path.suffix](path))["Requires-Python"]
    needs = f' data-requires-python="{escape(python)}"' if python else ""
    return f'<a href="{path.name}#sha256={digest}"{needs}>{path.name}</a>\n'


class _Quiet(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing of what is asked for."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve an index on 127.0.0.1 while the block runs; the value is its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
