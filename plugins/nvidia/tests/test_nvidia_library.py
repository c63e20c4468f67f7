"""Loading nvidia-ml-py costs half, and nobody else notices."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")

SCRIPT = """
import json, sys
from probe_nvidia.library import _client
client = _client()
unused = ("subprocess", "shutil", "tempfile", "ctypes.util")
light = [name for name in unused if name in sys.modules]
import ctypes.util
print(json.dumps([client.__name__, light, ctypes.util.__name__, hasattr(ctypes.util, "test"),
                  client.find_library("no-such-library-anywhere")]))
"""


def test_client_comes_without_what_it_never_uses() -> None:
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    # The real ctypes.util is back afterwards, and the client's own name leads to it.
    assert json.loads(done.stdout) == ["pynvml", [], "ctypes.util", True, None]
