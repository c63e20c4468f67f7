"""What a message of a node means, or the end of its process without one: status, reason, fix."""

from __future__ import annotations

import shlex

from probe_cluster.gathering.lines import MOST_TEXT
from probe_cluster.gathering.model import LONGER, Answer
from probe_cluster.shared import amount, table, tables
from probe_core.commands import parse_json, size
from probe_core.wording import clean_text, counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from probe_cluster.gathering.known_texts import KnownTexts
    from probe_cluster.gathering.lines import Stream
    from probe_cluster.gathering.model import BasicsDoc, Message
    from probe_cluster.gathering.process import Ended
    from probe_core.model.document import Json


INSTALL = "install it there: pip install probe-core, or name its place: --probe PATH"

_PYTHON = "install Python 3.11 or newer there, or probe-core with one: uv tool install probe-core"

_NO_PYTHON = "no Python 3.6 or newer is on its PATH, so no probe runs there"

_SPACE = "free 10 MB in one of these folders, or install probe-core there: pip install probe-core"

_AGAIN = "run it again"

_HERE = "run `probe --json` on that node"

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
    ("not responding", "check that {1} is on, and the network between; then run it again"),
    ("closed by remote host", "see why {1} closed the connection: journalctl -u ssh"),
    ("forbidden", "ask for the right to run `kubectl exec` and to list pods"),
    ("Unauthorized", "log in again, then try `kubectl get pods`"),
)

_CHANGED = ("Host key for ", " has changed and you have requested strict checking.")
"""What stands around the name under which OpenSSH keeps a key: [ADDRESS]:PORT, or the host."""


def message_of(stream: Stream) -> Message:
    """Return the message of a stream. Raises `ValueError` for one that is not whole."""
    if stream.end is not None and stream.end[0] == "absent":
        return {"kind": "no-python", "broken": stream.end[1].decode("utf-8", "replace").strip()}
    try:
        message = parse_json(stream.text())
    except RecursionError:
        message = None
    if not isinstance(message, dict):
        raise ValueError("its program prints what cannot be read")
    return message


def damaged(id_: str, error: ValueError) -> Answer:
    """Return the answer of a node whose message is not whole."""
    return Answer(id_, "invalid", str(error), _AGAIN)


def answer_of(id_: str, message: Message) -> Answer:
    """Return the answer that the last message of a node is."""
    kind = message.get("kind")
    if kind == "answer":
        return _printed(id_, message)
    if kind == "no-python":
        broken = _text(message.get("broken"), 200)
        reason = f"{broken} is there and does not start" if broken else _NO_PYTHON
        fix = f"look why: run `{broken} -I -S -c pass` there" if broken else _PYTHON
        return Answer(id_, "no-probe", reason, fix)
    if kind == "absent":
        return Answer(id_, "no-probe", "probe-core is not installed there, or not on PATH", INSTALL)
    if kind == "old":
        return _too_old(id_, message)
    if kind == "late":
        return Answer(id_, "timeout", "`probe --json` did not end there in time", LONGER)
    reason = _text(message.get("reason"), 600) or "it gave no reason"
    return Answer(id_, "failed", f"no probe could be started there: {reason}", _SPACE)


def unsent(id_: str, error: ValueError) -> Answer:
    """Return the answer of a node that has no probe, and to which none can be sent."""
    return Answer(id_, "no-probe", f"none is installed there, and {error}", INSTALL)


def _printed(id_: str, message: Message) -> Answer:
    """Return the answer of a `probe` that ended."""
    out, status = message.get("out"), message.get("status")
    text = out.encode() if isinstance(out, str) else b""
    version = _text(message.get("installed"), 60) or None
    if len(text) > MOST_TEXT:
        reason = f"its answer is longer than {MOST_TEXT >> 20} MiB"
        return Answer(id_, "invalid", reason, _HERE)
    if _starts(text) or (text.strip() and status == 0):
        return Answer(id_, "ok", text=text, version=version, sent=message.get("sent") is True)
    lines = [line for line in f"{out}\n{message.get('err')}".splitlines() if line.strip()]
    sentence = clean_text(lines[-1].strip(), 300) if lines else "it printed nothing"
    if isinstance(status, int) and status < 0:
        reason = f"`probe --json` was ended there by {_signal(-status)}"
        return Answer(id_, "failed", reason, "look for the cause there: journalctl -k -n 50")
    return Answer(id_, "failed", f"`probe --json` ended with {status} there: {sentence}", _HERE)


def _signal(number: int) -> str:
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _too_old(id_: str, message: Message) -> Answer:
    """Return the answer of a node whose Python is too old for what is sent, with what it sees."""
    basics = basics_of(table(message.get("basics")))
    python = _text(message.get("python"), 20) or "older"
    installed = _text(message.get("installed"), 60)
    reason = f"no Python 3.11 or newer is there to run the probe: it has {python}"
    if installed:
        reason += f"; its own probe-core is {installed}"
    return Answer(id_, "no-probe", f"{reason}; {_seen(basics)}", _PYTHON, basics=basics)


def basics_of(facts: Mapping[str, Json]) -> BasicsDoc:
    """Return what an old Python sees, each part that has no sound form unknown."""
    devices = facts.get("pci")
    rows = [
        {name: _text(row.get(name), 20) for name in ("address", "class", "id")}
        for row in tables(devices)[:256]
    ]
    return {
        "source": "/sys and /proc, without probe-core",
        "pci": rows if isinstance(devices, list) else None,
        "memory": amount(facts.get("memory")),
        "kernel": _text(facts.get("kernel"), 100) or None,
        "arch": _text(facts.get("arch"), 40) or None,
    }


def _seen(basics: BasicsDoc) -> str:
    """Return what an old Python sees in words; PCI ids, for nothing there knows names."""
    rows, memory = basics["pci"], basics["memory"]
    if rows is None:
        bus = "its PCI bus cannot be read"
    elif not rows:
        bus = "its PCI bus has no display device and no accelerator"
    else:
        ids = sorted(row["id"] for row in rows)
        kinds = [f"{ids.count(id_)} x {id_}" for id_ in dict.fromkeys(ids)]
        bus = f"its PCI bus has {counted(len(ids), 'such device')}: {', '.join(kinds[:8])}"
    return bus if memory is None else f"{bus}; {size(memory)} of memory"


def _text(value: Json, most: int) -> str:
    return clean_text(value, most) if isinstance(value, str) else ""


# A document among other lines: a wrapper of `probe`, or of its shell, may print before and after.

_MOST_STARTS = 64
"""Lines that may begin a document. A judgement: banners have few that begin with a brace."""


def _starts(text: bytes) -> list[int]:
    """Return where lines begin that begin with a brace, the first of them."""
    starts: list[int] = []
    at = 0
    while len(starts) < _MOST_STARTS and at >= 0:
        if text.startswith(b"{", at):
            starts.append(at)
        end = text.find(b"\n", at)
        at = end + 1 if end >= 0 else -1
    return starts


def _last_end(text: bytes) -> int:
    """Return where the last line ends that ends with a brace; 0 without one."""
    end = len(text)
    while end > 0:
        start = text.rfind(b"\n", 0, end) + 1
        if text[start:end].rstrip().endswith(b"}"):
            return end
        end = start - 1
    return 0


def document_of(text: bytes, known: KnownTexts) -> tuple[bytes, Json]:
    """Return the document within `text` and its value. Raises `ValueError` that says what is wrong.

    Lines before and after it are passed over. The value lacks what `known` leaves out.
    """
    try:
        return text, parse_json(known.left_out(text))
    except (ValueError, RecursionError) as error:
        problem = error
    starts, last = _starts(text), _last_end(text)
    for start in starts:
        line = text.find(b"\n", start)
        # `probe --json` prints one line; one that a person indented ends with the last brace.
        for end in {last, line if line >= 0 else len(text)}:
            try:
                return text[start:end], parse_json(text[start:end])
            except (ValueError, RecursionError):
                continue
    if not starts:
        lines = text.decode("utf-8", "replace").splitlines()
        first = next((line for line in lines if line.strip()), "nothing")
        raise ValueError(f"it printed no document, but: {clean_text(first.strip(), 200)}")
    if isinstance(problem, RecursionError):
        raise ValueError("its document is nested too deep")
    how = "its end is missing" if text.rstrip()[-1:] != b"}" else clean_text(str(problem), 200)
    raise ValueError(f"its document of {len(text) - starts[0]} bytes is damaged: {how}")


# The end of a node's process without an answer.


def unanswered(id_: str, host: str, ended: Ended, *, started: bool, seconds: float) -> Answer:
    """Return the answer of a node whose process ended, or was ended, without one."""
    if ended.unstarted is not None:
        return Answer(id_, "failed", ended.unstarted, "install that command on this computer")
    if ended.timed_out:
        return late(id_, started, seconds)
    status = f"the command ended with {ended.status}"
    if entry := _changed_key(ended.stderr):
        fix = f"compare the key, then forget the old one: ssh-keygen -R {shlex.quote(entry)}"
        return Answer(id_, "missing", f"the host key of {entry} has changed ({status})", fix)
    sentence = ended.last_line() if started else ended.last_printed()
    reason = f"{sentence} ({status})" if sentence else f"{status} and no answer"
    if started:
        reason = f"the connection ended before its answer was whole: {reason}"
    return Answer(id_, "missing", reason, _fix(ended.stderr, host) or (_AGAIN if started else None))


def late(id_: str, started: bool, seconds: float) -> Answer:
    """Return the answer of a node that gave none in time; `started`: its program runs there."""
    step = "`probe --json` runs there since" if started else "nothing came of it for"
    return Answer(id_, "timeout", f"{step} {seconds:g} s", LONGER)


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
