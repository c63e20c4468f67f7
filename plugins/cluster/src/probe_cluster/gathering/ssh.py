"""Nodes by name, through the user's own ssh with its keys and configuration."""

from __future__ import annotations

import os
import shlex

from probe_cluster.gathering.launching import attend_each, run_each
from probe_cluster.gathering.model import Target
from probe_cluster.gathering.sending import node_script
from probe_cluster.shared import ClusterError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from probe_cluster.gathering.model import Limits, Sink, Wire
    from probe_cluster.network.start import Start


_MOST_HOSTS = 100_000

_FILE_LIMIT = 4 << 20
"""Bytes of a file of hosts: forty a host of the most."""

# BatchMode: a question for a password would wait for a terminal that 64 of them share.
# ControlMaster: an existing shared connection is used, but none is left behind that holds the
# pipes open. A network that is cut closes no connection: without an answer for 15 s ssh ends.
_OPTIONS = (
    "-T -o BatchMode=yes -o ConnectTimeout=5 -o ControlMaster=no"
    " -o ServerAliveInterval=5 -o ServerAliveCountMax=3"
).split()


class Ssh:
    """Hosts as `ssh` takes them: a name, user@name, or a Host of ~/.ssh/config."""

    name = "ssh"
    resumes = True
    process_each = True

    def __init__(self, hosts: Sequence[str]) -> None:
        self._hosts = list(hosts)

    async def targets(self) -> list[Target]:
        """Return the hosts."""
        return [Target(host, _destination(host)) for host in self._hosts]

    async def collect(self, targets: Sequence[Target], limits: Limits, sink: Sink) -> None:
        """Start an ssh for each host."""
        script = f"exec sh -c {shlex.quote(node_script(limits))}"
        await run_each(targets, lambda t: on_host(t.address, script), limits, sink)

    async def agents(self, targets: Sequence[Target], start: Start, wire: Wire) -> None:
        """Start an ssh for the agent of each host; its input is the agent's."""
        script = f"exec sh -c {shlex.quote(start.script())}"
        await attend_each(targets, lambda t: on_host(t.address, script), start, wire)


def on_host(host: str, script: str) -> list[str]:
    """Return the words of the command that runs a script on a host."""
    return ["ssh", *_OPTIONS, _destination(host), script]


def _destination(host: str) -> str:
    """Return what ssh takes: of ``host:22`` a URI, for alone it has no such form."""
    name, colon, port = host.rpartition(":")
    return f"ssh://{host}" if colon and port.isdecimal() and ":" not in name else host


def parse_hosts(text: str) -> list[str]:
    """Return the hosts of ``a,b,c``, or of a file with one a line. Raises `ClusterError`.

    In a file an empty line and what follows ``#`` do not count, and of an inventory's line the
    first word does. A host that is there twice is asked once.
    """
    names = _from_file(text) if os.path.isfile(text) else text.split(",")
    hosts = list(dict.fromkeys(filter(None, (name.strip() for name in names))))
    if not hosts:
        raise ClusterError(f"--hosts {text}: no host is in it; write a,b,c or a file of names")
    if len(hosts) > _MOST_HOSTS:
        raise ClusterError(f"--hosts {text}: {len(hosts)} hosts; at most {_MOST_HOSTS}")
    for host in hosts:
        # ssh would take it for an option, such as -oProxyCommand=…
        if host.startswith("-") or not host.isprintable() or len(host) > 300 or " " in host:
            raise ClusterError(f"--hosts: {host[:60]!r} is no host name")
    return hosts


def _from_file(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(_FILE_LIMIT)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise ClusterError(f"--hosts {path}: {reason}") from None
    lines = (line.partition("#")[0].split() for line in text.splitlines())
    return [fields[0] for fields in lines if fields and not fields[0].startswith("[")]
