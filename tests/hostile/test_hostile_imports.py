"""Plugins that cannot be loaded: each is named exactly, and costs nothing but its own answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Probe = Callable[..., dict[str, Any]]
HOOK = "@hookimpl\ndef probe_devices(request):\n    return [ONE]\n"

CASES: dict[str, tuple[str, str, str]] = {
    "missing-module": ("import no_such_module", "load_error", "No module named 'no_such_module'"),
    "missing-library": (
        "import ctypes; ctypes.CDLL('libnvidia-none.so.1')",
        "load_error",
        "OSError: libnvidia-none.so.1",
    ),
    "syntax-error": ("def (:", "load_error", "SyntaxError"),
    "indentation": (" x = 1\n  y", "load_error", "IndentationError"),
    "nul-bytes": ("x = '\0'", "load_error", "source code "),
    "circular": ("from x_bad import later", "load_error", "cannot import name 'later'"),
    "wrong-attribute": ("import os; os.no_such", "load_error", "AttributeError: module 'os'"),
    "raises": ("raise ValueError('at import')", "load_error", "ValueError: at import"),
    "raises-unprintable": (
        "class E(Exception):\n    def __str__(self): raise self\nraise E",
        "load_error",
        "E: (its message cannot be printed)",
    ),
    "sys-exit": ("sys.exit('bye')", "load_error", "SystemExit: bye"),
    "recursion": ("def f(): f()\nf()", "load_error", "RecursionError"),
    "huge-message": ("raise ValueError('x' * 10**7)", "load_error", "ValueError: xxx"),
    "no-hook": ("pass", "load_error", "has no probe_devices"),
    "misspelt-hook": (
        "@hookimpl\ndef probe_device(request): ...",
        "load_error",
        "'probe_device' is marked as a hook",
    ),
    "no-function": ("probe_devices = 5", "load_error", "is a int, not a function"),
    "no-mark": ("def probe_devices(request): ...", "load_error", "lacks the @hookimpl mark"),
    "wrong-arguments": (
        "@hookimpl\ndef probe_devices(req, more): ...",
        "load_error",
        "definition: probe_devices(req, more)",
    ),
    "getattr-raises": (
        "def __getattr__(name): raise RuntimeError('no ' + name)",
        "load_error",
        "RuntimeError: no ",
    ),
    "os-exit": ("os._exit(7)", "crashed", "exited with status 7 while its module was imported"),
    "abort": ("os.abort()", "crashed", "killed by SIGABRT while its module was imported"),
    "segfault": (
        "import ctypes; ctypes.string_at(0)",
        "crashed",
        "SIGSEGV while its module was imported (Fatal Python error: Segmentation fault)",
    ),
    "replaces-itself": (
        "class M:\n    def __getattr__(self, n): raise SystemExit\nsys.modules[__name__] = M()",
        "load_error",
        "SystemExit",
    ),
    "prints-and-works": ("print('hello')\n" + HOOK, "ok", ""),
    "closes-output-and-works": ("sys.stdout.close(); sys.stderr.close()\n" + HOOK, "ok", ""),
}


@pytest.mark.heavy
@pytest.mark.parametrize("case", CASES)
def test_import(probe_with: Probe, case: str) -> None:
    source, status, reason = CASES[case]
    outcome = probe_with(source)
    assert outcome["status"] == status
    assert reason in (outcome["reason"] or "")
    assert len(outcome["reason"] or "") <= 1100


@pytest.mark.heavy
def test_import_that_hangs(probe_with: Probe) -> None:
    outcome = probe_with("time.sleep(60)", timeout=0.5)
    assert outcome["status"] == "timeout"
    assert outcome["reason"].startswith("importing its module took longer than 0.5 s (at File")


def test_module_that_is_gone(probe_with: Probe, site: Path) -> None:
    metadata = site / "probe_bad-1.0.dist-info"
    metadata.mkdir()
    (metadata / "entry_points.txt").write_text("[probe_core.probers.v1]\nbad = x_bad.sub:Thing\n")
    outcome = probe_with(None)
    assert outcome["status"] == "load_error"
    assert "No module named 'x_bad'" in outcome["reason"]


ODD_FILES = {
    "not-utf8": ("x_bad.py", b"# \xff\xfe\nx = '\xff'", "SyntaxError"),
    "no-library-at-all": ("x_bad.so", b"\x7fELF garbage", "ImportError"),
    "no-bytecode-at-all": ("x_bad.pyc", b"garbage", "ImportError: bad magic number"),
    "a-folder": ("x_bad.py/file", b"", "No module named 'x_bad'"),
}


@pytest.mark.heavy
@pytest.mark.parametrize("case", ODD_FILES)
def test_odd_files(probe_with: Probe, site: Path, case: str) -> None:
    name, content, reason = ODD_FILES[case]
    metadata = site / "probe_bad-1.0.dist-info"
    metadata.mkdir()
    (metadata / "entry_points.txt").write_text("[probe_core.probers.v1]\nbad = x_bad\n")
    (site / name).parent.mkdir(exist_ok=True)
    (site / name).write_bytes(content)
    outcome = probe_with(None)
    assert outcome["status"] == "load_error"
    assert reason in outcome["reason"]
