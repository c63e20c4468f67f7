"""Plugins that change, patch, fork and use up all they can reach: it is their own process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from weights import mostly_heavy

from probe_core.isolation import processes

Hostile = Callable[..., dict[str, Any]]

LATE: dict[str, str] = {
    "atexit-hangs": "import atexit; atexit.register(time.sleep, 60)",
    "thread-hangs": "import threading; threading.Thread(target=time.sleep, args=(60,)).start()",
    "collector-hangs": "class D:\n    def __del__(self): time.sleep(60)\nglobal D1; D1 = D()",
    "environment": "os.environ.clear(); os.environ['PATH'] = 'x'; os.putenv('Y', 'z')",
    "directory-and-mask": "os.chdir('/'); os.umask(0)",
    "directory-deleted": "os.mkdir('d'); os.chdir('d'); os.rmdir('../d')",
    "root": "if os.geteuid() == 0: os.chroot('.')",
    "locale": "import locale; locale.setlocale(locale.LC_ALL, 'C')",
    "limits": "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))",
    "niceness": "os.nice(19)",
    "signal-handlers": "import signal\nfor s in signal.valid_signals() - {9, 19}:\n"
    "    signal.signal(s, lambda *a: 1 / 0)",
    "blocked-signals": "import signal; signal.pthread_sigmask(0, signal.valid_signals())",
    "trace": "def t(*a): raise RuntimeError\nsys.setprofile(lambda *a: None)",
    "switches": "sys.setrecursionlimit(200); sys.setswitchinterval(9)",
    "excepthook": "sys.excepthook = sys.unraisablehook = None",
    "json": "import json; json.dumps = json.loads = None",
    "os": "os.write = os.getpid = os._exit = os.fstat = os.read = None",
    "open-and-print": "import builtins; builtins.open = builtins.print = None",
    "import": "import builtins; builtins.__import__ = None",
    "modules": "sys.modules.clear()",
    "path": "sys.path.clear(); sys.meta_path.clear(); sys.path_hooks.clear()",
    "time": "time.sleep = time.monotonic = time.time = None",
    "streams": "sys.stdout = sys.stderr = sys.stdin = object()",
    "gc": "import gc; gc.disable(); gc.freeze()",
    "session": "os.setpgid(0, 0) if os.getpgid(0) != os.getpid() else None",
    "asyncio": "import asyncio\nasync def f(): return 1\nassert asyncio.run(f()) == 1",
    "daemon": "if os.fork() == 0:\n    os.setsid()\n    time.sleep(60)",
    "tools-left-behind": "import subprocess\n"
    "for _ in range(20): subprocess.Popen(['sleep', '60'], start_new_session=True)",
    "shell-in-the-background": "os.system('sleep 60 & setsid sleep 60 &')",
    "many-forks": "for _ in range(50):\n    if os.fork() == 0: time.sleep(60)",
    "fork-also-answers": "os.fork()",
    "zombies": "for _ in range(50):\n    if os.fork() == 0: os._exit(0)",
    "multiprocessing": "import multiprocessing as m\n"
    "p = m.get_context('fork').Process(target=time.sleep, args=(0,)); p.start(); p.join()\n"
    "assert p.exitcode == 0",
    "10000-descriptors": "import resource\n"
    "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
    "resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))\n"
    "kept = [os.open('/dev/null', 0) for _ in range(min(10_000, hard - 300))]",
    "3000-threads": "import threading\nthreading.stack_size(1 << 16)\n"
    "for _ in range(3000): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
}


@pytest.mark.parametrize("case", mostly_heavy(LATE, 6))
def test_what_it_changes_is_its_own_affair(hostile: Hostile, tmp_path: Path, case: str) -> None:
    outcome = hostile(f"os.chdir({str(tmp_path)!r})\n{LATE[case]}\nyield ONE")
    assert (outcome["status"], outcome["reason"], outcome["devices"]) == ("ok", None, 1)


ANY_FAILURE: dict[str, str] = {
    "isinstance": "import builtins; builtins.isinstance = lambda *a: False",
    "everything": "import builtins\nfor n in dir(builtins): setattr(builtins, n, None)",
    "tracer-raises": "def t(*a): raise RuntimeError('traced')\nsys.settrace(t)\nos.path.join('a')",
    "interpreter": "import ctypes; ctypes.pythonapi.Py_FinalizeEx()",
    "memory-smashed": "import ctypes; ctypes.memset(id(None), 255, 64)",
    "answers-module": "import probe_core.isolation.hook as a; a.Answers.take = None",
    "channel": "import probe_core.isolation.child as c; c.Channel.send = None; c._write = None",
}


@pytest.mark.heavy
@pytest.mark.parametrize("case", ANY_FAILURE)
def test_what_ruins_its_own_process_ruins_nothing_else(hostile: Hostile, case: str) -> None:
    outcome = hostile(
        f"yield ONE\n{ANY_FAILURE[case]}\nyield {{**ONE, 'ids': ['x:2']}}", timeout=2.0
    )
    assert outcome["status"] in ("ok", "call_error", "crashed", "protocol", "timeout", "invalid")
    if outcome["status"] != "ok":
        assert outcome["reason"]


@pytest.mark.heavy
def test_memory_until_there_is_none(hostile: Hostile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "MEMORY_LIMIT", 256 << 20)
    outcome = hostile("yield ONE\nkept = []\nwhile True: kept.append(b'x' * (8 << 20))")
    assert (outcome["status"], outcome["partial"]) == ("resource", True)
    assert outcome["reason"] == "it used more than 0.25 GiB of memory"
