"""Plugins that write and read what is not theirs, down to frames that they forge."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import pytest

Hostile = Callable[..., dict[str, Any]]
Check = Callable[[dict[str, Any], str, str], None]
OK = ("ok", "")

OUTPUT: dict[str, tuple[str, tuple[str, str]]] = {
    "prints": ("print('noise')\nsys.stdout.write('x' * 10**6)\nyield ONE", OK),
    "raw-descriptors": ("os.write(1, b'raw')\nos.write(2, b'raw')\nyield ONE", OK),
    "from-c": (
        "import ctypes; c = ctypes.CDLL(None)\nc.puts(b'from C'); c.fflush(None)\nyield ONE",
        OK,
    ),
    "not-text": ("os.write(2, bytes(range(256)) * 100)\nyield ONE", OK),
    "20-MB-on-stderr": ("for _ in range(20): sys.stderr.write('x' * 10**6)\nyield ONE", OK),
    "reads-input": ("assert sys.stdin.read() == ''\nassert os.read(0, 1) == b''\nyield ONE", OK),
    "asks-a-question": ("input('sure?')", ("call_error", "EOFError")),
    "the-terminal": ("open('/dev/tty', 'w').write('hello')", ("call_error", "OSError")),
    "closes-its-output": ("os.close(1); os.close(2)\nyield ONE\nprint('x')\nyield ONE", OK),
    "closes-streams": ("sys.stdout.close(); sys.stderr = None; sys.stdout = None\nyield ONE", OK),
    "strays-on-the-pipe": (
        (
            "for fd in range(3, 300):\n"
            "    try: os.write(fd, b'stray\\n')\n    except OSError: pass\nyield ONE"
        ),
        OK,
    ),
    "floods-the-pipe": (
        (
            "while True:\n    for fd in range(3, 300):\n"
            "        try: os.write(fd, b'stray' * 9999)\n        except OSError: pass"
        ),
        ("protocol", "flooded|a frame of more than"),
    ),
    "half-a-frame": (
        "c = CHANNEL()\nos.write(c._fd, c._token.encode() + b' {')\nos._exit(0)",
        ("crashed", "exited with status 0 before it had answered"),
    ),
    "forges-nonsense": (
        "SEND('[}')\ntime.sleep(9)",
        ("protocol", "a frame that cannot be read"),
    ),
    "forges-a-status": (
        """SEND('{"kind": "end", "status": "great"}')\ntime.sleep(9)""",
        ("protocol", "a frame that cannot be read"),
    ),
    "forges-numbers": (
        """
        device = '{"kind": "device", "device": {"ids": ["x:%d"], "kind": "npu", "units": %s}}'
        for number in ('NaN', '1e999', '9' * 400):
            SEND(device % (len(number), number))
        yield ONE
        """,
        OK,
    ),
    "sends-without-end": (
        "while True: yield finding('c', what='x' * 4000, why='y' * 4000, fix='z' * 4000)",
        ("timeout|resource", ""),
    ),
}
CHANNEL = """
def CHANNEL():
    frame = sys._getframe()
    while 'channel' not in frame.f_locals: frame = frame.f_back
    return frame.f_locals['channel']

def SEND(text):
    c = CHANNEL()
    os.write(c._fd, (c._token + ' ' + text + '\\n').encode())
"""


@pytest.mark.heavy
@pytest.mark.parametrize("case", OUTPUT)
def test_output(hostile: Hostile, check: Check, case: str) -> None:
    body, (status, reason) = OUTPUT[case]
    outcome = hostile(CHANNEL + textwrap.dedent(body), timeout=2.0 if "timeout" in status else 8.0)
    check(outcome, status, reason)
    if status == "ok":
        assert outcome["devices"] >= 1
