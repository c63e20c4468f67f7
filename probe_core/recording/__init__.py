"""Recorded machines: read from foreign files without harm, and written from this machine."""

from __future__ import annotations

from probe_core.recording.limits import BadRecording
from probe_core.recording.opening import open_machine, unpack
from probe_core.recording.read import read
from probe_core.recording.recording import Recording

__all__ = ["BadRecording", "Recording", "open_machine", "read", "unpack"]
