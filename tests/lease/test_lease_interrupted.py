"""A host whose request is interrupted, by Ctrl-C in a notebook, goes on and holds nothing."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from lease_node import Node

from probe_core.leasing import lease
from probe_core.pipeline.refresh import refresh

LOOKS = ("acquire.py", "folder.py", "ranges.py", "records.py", "queues.py", "holders.py", "proc.py")
"""Where a look at the devices spends its time with locks in its hand."""
CLEANUP = ("close", "unlock", "_remove", "unsign", "put_back", "release")


class Interrupt:
    """Raises KeyboardInterrupt at the n-th call of a look, as a signal's handler could."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.count = 0

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        caller = frame.f_back.f_code.co_name if frame.f_back else ""
        code = frame.f_code
        if event != "call" or not code.co_filename.endswith(LOOKS):
            return
        if code.co_name not in CLEANUP and caller not in CLEANUP:
            self.count += 1
            if self.count > self.number:
                sys.setprofile(None)
                raise KeyboardInterrupt


def interrupted(number: int, **request: Any) -> bool:
    """Return whether a request is interrupted at that call; what it gets is given back."""
    sys.setprofile(Interrupt(number))
    try:
        held = lease(2, **request)
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(None)
    held.release()
    return False


def locks(folder: Path) -> list[str]:
    """Return the files in a lease folder that this process has open."""
    names = [os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]
    return [name for name in names if name.startswith(f"{folder}/")]


@pytest.mark.heavy
@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="no /proc to count open files by")
@pytest.mark.parametrize("kind", [{}, {"share": True}, {"reserve": "20GiB"}, {"wait": 1}])
def test_nothing_is_held_wherever_it_is_interrupted(node: Node, kind: dict[str, Any]) -> None:
    document = dict(node.document)
    refresh(document, {})
    request = {"report": document, "environ": node.environ, **kind}
    assert not interrupted(1 << 40, **request)  # modules are imported now
    number = 0
    while interrupted(number, **request):
        assert locks(node.leases) == []
        assert node.records() == []
        with lease(2, report=document, environ=node.environ) as held:
            assert len(held.devices) == 2
        number += 1
    assert number > 5
