"""Recorded machines: read from foreign files without harm, and written from this machine."""

from __future__ import annotations

from probe_core.recording.archives import read
from probe_core.recording.document import Recording
from probe_core.recording.opening import open_machine, unpack
from probe_core.recording.paths import BadRecording

__all__ = ["BadRecording", "Recording", "open_machine", "read", "unpack"]
