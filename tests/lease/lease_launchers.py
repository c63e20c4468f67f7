"""Commands that start a worker in the ways launchers do, print its process number, and wait."""

from __future__ import annotations

# Each worker has no open file of its launcher but its standard streams, and sleeps.
WORKER = "import sys, time; time.sleep(60)"

_ENDING = "import time; time.sleep(60)"

POPEN = f"""
import subprocess, sys
worker = subprocess.Popen([sys.executable, "-c", {WORKER!r}])
print(worker.pid, flush=True)
{_ENDING}
"""

SETSID = f"""
import subprocess, sys
worker = subprocess.Popen([sys.executable, "-c", {WORKER!r}], start_new_session=True)
print(worker.pid, flush=True)
{_ENDING}
"""

DOUBLE_FORK = f"""
import os, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(3, 2000)
        print(os.getpid(), flush=True)
        os.execve(sys.executable, [sys.executable, "-c", {WORKER!r}], {{}})
    os._exit(0)
os.wait()
{_ENDING}
"""

_MULTIPROCESSING = """
import multiprocessing, time
def work():
    time.sleep(60)
if __name__ == "__main__":
    worker = multiprocessing.get_context({method!r}).Process(target=work)
    worker.start()
    print(worker.pid, flush=True)
    time.sleep(60)
"""

SPAWN = _MULTIPROCESSING.format(method="spawn")
FORKSERVER = _MULTIPROCESSING.format(method="forkserver")

LAUNCHERS = {
    "Popen": POPEN,
    "setsid": SETSID,
    "double fork": DOUBLE_FORK,
    "spawn": SPAWN,
    "forkserver": FORKSERVER,
}
