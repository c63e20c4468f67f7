"""A real sshd of this computer on a free port of the loopback, and an ssh that reaches it alone."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")

SSH = shutil.which("ssh")

CONFIG = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PidFile {folder}/pid
PasswordAuthentication no
StrictModes no
UsePAM no
MaxStartups 200:30:400
SetEnv PATH={path} {environ}
"""

WRAPPER = """#!/bin/sh
exec {ssh} -F {folder}/client "$@"
"""

CLIENT = """
Host *
  HostName 127.0.0.1
  Port {port}
  IdentityFile {folder}/user
  UserKnownHostsFile {folder}/known
  StrictHostKeyChecking accept-new
  LogLevel ERROR
"""


class Sshd:
    """The daemon; `path` is that of the commands it runs, `environ` more of their variables."""

    def __init__(self, folder: Path, path: str, **environ: str) -> None:
        for name in ("host", "user"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
            subprocess.run(command, check=True)
        port = _free_port()
        pairs = " ".join(f"{name}={value}" for name, value in environ.items())
        (folder / "sshd").write_text(
            CONFIG.format(port=port, folder=folder, path=path, environ=pairs)
        )
        (folder / "client").write_text(CLIENT.format(port=port, folder=folder))
        (folder / "bin").mkdir()
        wrapper = folder / "bin" / "ssh"
        wrapper.write_text(WRAPPER.format(ssh=SSH, folder=folder))
        wrapper.chmod(0o755)
        self.bin = folder / "bin"
        Path("/run/sshd").mkdir(exist_ok=True)  # its empty folder for what it has no rights to
        assert SSHD is not None
        with (folder / "log").open("w") as log:
            self.process = subprocess.Popen(
                [SSHD, "-D", "-e", "-f", str(folder / "sshd")], stderr=log, start_new_session=True
            )
        _wait_for(port)

    def end(self) -> None:
        """End the daemon; its connections stay, as they do when a real one is restarted."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(10)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _wait_for(port: int) -> None:
    until = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            assert time.monotonic() < until, "sshd did not start"
            time.sleep(0.02)
