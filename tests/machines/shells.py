"""Real shells on a pseudo-terminal: what a Tab makes of an unfinished line."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from types import TracebackType

LIMIT_S = 60.0
"""For one answer on a machine that is busy with everything else."""

_ESCAPES = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|[=>]|\([A-Z0-9])|[\x07\r]")

SHOW, ALL = "\x14", "\x07"
"""Ctrl-T prints the line between marks; Ctrl-G (bash) puts every completion into it."""

_BASH = r"""PS1=''; set +o history
bind 'set enable-bracketed-paste off'; bind 'set bell-style none'
bind '"\C-g": insert-completions'
show() { printf '\n<<%s>>\n' "$READLINE_LINE"; }
bind -x '"\C-t": show'
"""
_ZSH = r"""PROMPT=''; PROMPT_EOL_MARK=''; unsetopt beep; LISTMAX=1000
show() { print -r -- "<<$BUFFER>>"; BUFFER=''; zle redisplay }
zle -N show; bindkey '^T' show
"""
_START = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], _BASH),
    "zsh": (["zsh", "-f", "-i"], _ZSH),
}


class Shell:
    """An interactive shell that has loaded the completion script as its manual says."""

    def __init__(self, name: str, folder: Path, before: str = "", after: str = "") -> None:
        self.name = name
        command, setup = _START[name]
        folder.mkdir(parents=True, exist_ok=True)
        binaries = folder / "bin"
        binaries.mkdir()
        program = binaries / "probe"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m probe_core "$@"\n')
        program.chmod(0o755)
        start = folder / "start"
        load = 'eval "$(probe completion ' + name + ')"'
        start.write_text(
            f"{setup}{before}\n{load}\n{after}\nprint_ready() {{ echo '<''<ready>>'; }}\n"
        )
        path = os.pathsep.join(entry for entry in sys.path if entry)
        environ = {
            "HOME": str(folder), "PATH": f"{binaries}:{os.environ['PATH']}", "PYTHONPATH": path,
            "TERM": "xterm", "LC_ALL": "C.UTF-8", "ZDOTDIR": str(folder),
        }  # fmt: skip
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 200, 200, 0, 0))
        self._process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=environ, cwd=folder,
            start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        self._send(f". {start}\nprint_ready\n")
        self._until("<<ready>>")

    def __enter__(self) -> Shell:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait(30)
        os.close(self._ours)

    def after(self, line: str, key: str = "\t") -> str:
        """Return the line as it stands after a key, without a space at its end."""
        shown = self._typed(line, key)
        return re.findall(r"<<(.*?)>>", shown, re.DOTALL)[-1].rstrip()

    def listed(self, line: str) -> list[str]:
        """Return the words that the shell shows for an ambiguous line."""
        return self._typed(line, "\t\t").split()

    def offered(self, line: str) -> list[str]:
        """Return every completion of the last word, as bash inserts them."""
        before = line.rpartition(" ")[0]
        return self.after(line, ALL).removeprefix(before).split()

    def enter(self, line: str) -> None:
        """Run a line as if somebody typed it, Tabs and all, and wait for its end."""
        self._send(f"{line}\n")
        self._send("print_ready\n")
        self._until("<<ready>>")

    def _typed(self, line: str, key: str) -> str:
        self._send(line + key + SHOW)
        shown = self._until(">>")
        self._send("\x15" if self.name == "bash" else "")  # Ctrl-U: an empty line again
        return shown

    def _send(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def _until(self, mark: str) -> str:
        got, end = "", time.monotonic() + LIMIT_S
        while mark not in got:
            ready, _, _ = select.select([self._ours], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise AssertionError(f"{self.name} showed no {mark!r}: {got!r}")
            got = _ESCAPES.sub("", got + os.read(self._ours, 65536).decode("utf-8", "replace"))
        return got


def missing(name: str) -> str | None:
    """Return why a shell cannot be tested; None where it can."""
    return None if shutil.which(name) else f"{name} is not installed"
