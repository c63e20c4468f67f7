"""A prober that says what a test wrote to files: the hardware, below everything that is tested."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from probe_core.api import Request, hookimpl


@hookimpl
def probe_devices(request: Request) -> Iterator[dict[str, Any]]:
    if request.machine.environ.get("EXO_TEST_HANGS"):
        threading.Event().wait()
    yield from json.loads(Path(request.machine.environ["EXO_TEST_DEVICES"]).read_text())


@hookimpl
def sample_devices(request: Any) -> Iterator[dict[str, Any]]:
    """Yield what EXO_TEST_SAMPLES holds now: device → what it uses, or a status."""
    path = request.machine.environ.get("EXO_TEST_SAMPLES")
    for device, now in json.loads(Path(path).read_text()).items() if path else ():
        yield {"device": device, **now}
