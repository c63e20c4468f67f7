"""What the agents of a measurement print, and why one is not there."""

from __future__ import annotations

from probe_core.commands import parse_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_cluster.gather_model import Message
    from probe_cluster.node_lines import Stream
    from probe_cluster.node_process import Ended

__all__ = ["lost_sentence", "message_of"]

NO_PYTHON = "no Python 3.8 or newer is on its PATH, and `probe` names none"


def message_of(stream: Stream) -> Message:
    """Return the message of a stream; one that cannot be read has the kind ``lost``."""
    if stream.end is None or stream.end[0] != "end":
        return {"kind": "lost", "reason": NO_PYTHON}
    try:
        message = parse_json(stream.text())
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        return {"kind": "lost", "reason": "its agent prints what cannot be read"}
    return message


def lost_sentence(ended: Ended) -> str:
    """Return why the process that started an agent is gone."""
    if ended.unstarted is not None:
        return ended.unstarted
    sentence = ended.last_line()
    if ended.status is None:
        return "its agent was ended"
    tail = f": {sentence}" if sentence else ""
    return f"its agent ended with {ended.status}{tail}"
