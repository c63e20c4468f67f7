"""What the end of a node's stream, or of its process, means: the answer, its reason and its fix."""

from __future__ import annotations

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
    ("Host key verification failed", "compare the key, then forget the old one: ssh-keygen -R {}"),
    ("REMOTE HOST IDENTIFICATION", "compare the key, then forget the old one: ssh-keygen -R {}"),
    ("Permission denied", "let {} accept a key without a password: ssh-copy-id {}"),
    ("Could not resolve", "check the name {}, or write its address"),
    ("Connection refused", "start the ssh server on {}, or name its port in ~/.ssh/config"),
    ("No route to host", "check that {} is on and reachable"),
    ("timed out", "check that {} is on, and that no firewall drops the connection"),
    ("forbidden", "ask for the right to run `kubectl exec` and to list pods"),
    ("Unauthorized", "log in again, then try `kubectl get pods`"),
)


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
    sentence = ended.last_line()
    status = f"the command ended with {ended.status}"
    reason = f"{sentence} ({status})" if sentence else f"{status} and no answer"
    return Answer(id_, "missing", reason, _fix(ended.stderr, host))


def _fix(stderr: str, host: str) -> str | None:
    for pattern, fix in _FIXES:
        if pattern in stderr:
            return fix.format(host, host)
    return None
