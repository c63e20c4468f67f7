"""What the end of a node's stream, or of its process, means: the answer, its reason and its fix."""

from __future__ import annotations

import shlex

from probe_cluster.gather_model import Answer
from probe_core.wording import clean_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_cluster.node_lines import Stream
    from probe_cluster.node_process import Ended

__all__ = ["INSTALL", "stream_answer", "unanswered"]

INSTALL = "install it there: pip install probe-core, or name its place: --probe PATH"

# What OpenSSH 9 and kubectl 1.31 print, and what to do. A sentence that none of them matches is
# passed on as it is.
_FIXES = (
    # A host that was never connected to: with BatchMode ssh prints this line alone.
    (
        "Host key verification failed",
        "connect by hand to accept its key: ssh {0}; if it replaces another: ssh-keygen -R {1}",
    ),
    ("Permission denied", "let {1} accept a key without a password: ssh-copy-id {0}"),
    ("Could not resolve", "check the name {1}, or write its address"),
    ("Connection refused", "start the ssh server on {1}, or name its port in ~/.ssh/config"),
    ("No route to host", "check that {1} is on and reachable"),
    ("timed out", "check that {1} is on, and that no firewall drops the connection"),
    ("forbidden", "ask for the right to run `kubectl exec` and to list pods"),
    ("Unauthorized", "log in again, then try `kubectl get pods`"),
)

_CHANGED = ("Host key for ", " has changed and you have requested strict checking.")
"""What stands around the name under which OpenSSH keeps a key: [ADDRESS]:PORT, or the host."""


def stream_answer(id_: str, stream: Stream) -> Answer:
    """Return the answer of a stream that ended."""
    kind, data = stream.end or ("error", b"")
    if kind == "absent":
        return Answer(id_, "no-probe", "probe-core is not installed there, or not on PATH", INSTALL)
    if kind == "error":
        status, _, text = data.decode("utf-8", "replace").partition(" ")
        sentence = clean_text(text.strip(), 300) or "it printed nothing"
        reason = f"`probe --json` ended with {clean_text(status, 12)} there: {sentence}"
        return Answer(id_, "failed", reason, "run `probe --json` on that node")
    try:
        return Answer(id_, "ok", text=stream.text())
    except ValueError as error:
        return Answer(id_, "invalid", str(error), "run it again; other output was mixed with it")


def unanswered(id_: str, host: str, ended: Ended, *, started: bool, seconds: float) -> Answer:
    """Return the answer of a node whose process ended, or was ended, without one."""
    if ended.unstarted is not None:
        return Answer(id_, "failed", ended.unstarted, "install that command on this computer")
    if ended.timed_out:
        step = "`probe --json` runs there since" if started else "nothing came of it for"
        fix = "give it more time: --timeout SECONDS"
        return Answer(id_, "timeout", f"{step} {seconds:g} s", fix)
    status = f"the command ended with {ended.status}"
    if entry := _changed_key(ended.stderr):
        fix = f"compare the key, then forget the old one: ssh-keygen -R {shlex.quote(entry)}"
        return Answer(id_, "missing", f"the host key of {entry} has changed ({status})", fix)
    sentence = ended.last_line()
    reason = f"{sentence} ({status})" if sentence else f"{status} and no answer"
    return Answer(id_, "missing", reason, _fix(ended.stderr, host))


def _changed_key(stderr: str) -> str | None:
    """Return the name in known_hosts of a host whose key is another one now."""
    before, after = _CHANGED
    for line in stderr.splitlines():
        if line.startswith(before) and line.rstrip().endswith(after):
            return clean_text(line.rstrip()[len(before) : -len(after)])
    return None


def _fix(stderr: str, host: str) -> str | None:
    for pattern, fix in _FIXES:
        if pattern in stderr:
            # Of user@host the host alone is a name in known_hosts and in the DNS.
            return fix.format(host, host.rpartition("@")[2])
    return None
