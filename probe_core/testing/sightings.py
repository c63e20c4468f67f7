"""A prober that reports what a made-up machine's file lists: its vendor's prober, elsewhere."""

from __future__ import annotations

import json

from probe_core.api import NotApplicable, Request, hookimpl, not_applicable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from probe_core.model.document import Sighting

FILE = "/sightings.json"


@hookimpl
def probe_devices(request: Request) -> list[Sighting] | NotApplicable:
    """Report the devices of the machine's `FILE`."""
    sightings: list[Sighting] = json.loads(request.machine.read(FILE) or "[]")
    return sightings or not_applicable("the file lists no device")
