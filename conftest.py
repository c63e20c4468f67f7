"""What the tests of every distribution of the repository share.

They start from the same surroundings whatever a shell, a service or a CI job hands down, and the
inputs that Hypothesis makes up are the same for everybody.

Markers: `heavy` stands at the quarter of the tests that takes most of the time; the README's
command leaves them out and `.ci/run` runs them. `timeout(seconds)` stands at a test that may take
longer than the limit for every test, which pyproject.toml sets.

There are 23,000 tests, and most take a millisecond: what each of them pays is counted here.
"""

from __future__ import annotations

import gc
import itertools
import os
import re
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import suppress
from functools import cache
from pathlib import Path
from time import monotonic, sleep  # not as attributes: tests replace those

import pytest
import pytest_timeout
from _pytest.assertion import rewrite
from _pytest.runner import runtestprotocol

# Hypothesis itself imports trio, for tests of its tasks that nobody has here: that takes longer
# than all else of Hypothesis.
os.environ["HYPOTHESIS_NO_PLUGINS"] = "1"
from hypothesis import HealthCheck, find, settings, strategies

del os.environ["HYPOTHESIS_NO_PLUGINS"]

# pytest's importlib mode puts no test folder on the path; plugins' parsers are fuzzed alike.
sys.path.insert(0, str(Path(__file__).parent / "tests" / "fuzz"))
sys.path.insert(0, str(Path(__file__).parent / "tests" / "machines"))
sys.path.append(str(Path(__file__).parent / "docs"))  # what makes schema, manuals and pages

if os.environ.get("PRIVATE_NAMES"):  # before anything imports the core
    from private_names import put_on_path

    put_on_path(os.environ["PRIVATE_NAMES"])

KEPT = {"PYTHONPATH", "PYTHONHOME", "PROBE_RAY_PYTHON"}
"""PROBE_RAY_PYTHON is asked for by tests: the Python that has Ray."""
FOREIGN = ("PROBE_", "PYTHON", "LC_", "CUDA_", "NVIDIA_", "HIP_", "ROCR_", "GPU_", "ZE_", "ONEAPI_")
FOREIGN += ("SLURM_", "KUBERNETES_", "OMP_", "OTEL_")
"""What variables begin with that our code, Python, or a vendor's library reads."""
FOREIGN_NAMES = {"NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "LINES"}
FOREIGN_NAMES |= {"LANGUAGE", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "LD_PRELOAD"}


def use_default_environment() -> None:
    """Drop the variables that change what is tested; children inherit what is left."""
    for name in set(os.environ) - KEPT:
        if name.startswith(FOREIGN) or name in FOREIGN_NAMES:
            del os.environ[name]
    os.environ["LANG"] = "C.UTF-8"
    os.environ.setdefault("HOME", os.path.expanduser("~"))
    # What was measured on this computer (`probe bench`) is shown by each probe, and is no test's.
    os.environ["XDG_STATE_HOME"] = os.path.join(os.devnull, "state")


def use_default_signals() -> None:
    """Undo what is inherited: `nohup` ignores SIGHUP, and a shell's background job SIGINT."""
    for number in signal.valid_signals():
        # Python itself ignores SIGPIPE and SIGXFSZ, and gives children their defaults back.
        if (
            number in (signal.SIGPIPE, signal.SIGXFSZ)
            or signal.getsignal(number) is not signal.SIG_IGN
        ):
            continue
        is_interrupt = number == signal.SIGINT
        signal.signal(number, signal.default_int_handler if is_interrupt else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


use_default_environment()
use_default_signals()
os.umask(0o022)
# Children that compile every module anew take most of their time for it; .gitignore has the files.
sys.dont_write_bytecode = False
sys.pycache_prefix = None

# For as long as one likes: `FUZZ_EXAMPLES=100000 python -m pytest tests/fuzz`, with new inputs at
# each run. Without it the inputs are few and always the same: a test fails for everybody or nobody.
EXAMPLES = os.environ.get("FUZZ_EXAMPLES")

settings.register_profile(
    "repository",
    max_examples=int(EXAMPLES or 100),
    derandomize=EXAMPLES is None,
    database=None,  # a checkout may be read-only
    deadline=None,  # a busy machine is no failure
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("repository")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """Give three workers to two processors: many tests wait, for a process or for a deadline."""
    if os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS"):
        return None
    here = hasattr(os, "sched_getaffinity")
    count = len(os.sched_getaffinity(0)) if here else os.cpu_count() or 1
    return count + count // 2


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where the heavy tests alone are asked for, import no file that has none."""
    if config.option.markexpr != "heavy" or not collection_path.name.startswith("test_"):
        return None
    return "heavy" not in collection_path.read_text("utf-8") or None


def rewrite_assertions(config: pytest.Config, number: int, count: int) -> None:
    """Keep the rewritten code of each `count`th file of tests, where none is kept yet.

    In a fresh checkout each worker would rewrite all files, at the same time as the others, which
    takes it 20 s of processor time: longer than all else of collecting. Here each has its share.
    """
    paths = [path for folder in config.args for path in sorted(Path(folder).rglob("test_*.py"))]
    # Private to pytest: what a release changes there costs the time alone. What is wrong in a file,
    # collecting says where.
    with suppress(Exception):
        for path in paths[number::count]:
            folder = rewrite.get_cache_dir(path.absolute())
            kept = folder / (path.stem + rewrite.PYC_TAIL)
            if kept.exists() or not rewrite.try_makedirs(folder):
                continue
            source_hash, code = rewrite._rewrite_test(path.absolute(), config)
            rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, source_hash, kept)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Look for no garbage while tests are collected, nor ever in what that makes: it stays."""
    config = session.config
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker and set(config.getini("testpaths")) & set(config.args):  # not for a few files
        count = int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        rewrite_assertions(config, int(worker.removeprefix("gw")), count)
    # Hypothesis registers its generator at its first use, and asks then for referrers; it finds
    # none that are frozen.
    find(strategies.none(), lambda _: True)
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Have a worker report the call of a test, and what failed or was skipped around it.

    xdist sends two messages more about each test, and one about each phase that passed. Only
    `--durations` shows any of these; without them a test takes 1.2 ms less of processor time, most
    of it in the process that reads what all workers send.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ or item.config.option.durations is not None:
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


timed: tuple[float, pytest.Item, pytest_timeout.Settings] | None = None
"""When the test that runs must have ended, and what says so."""


@cache
def start_to_watch() -> None:
    """Start the thread that ends this process when a test takes longer than it may."""

    def watch() -> None:
        while True:
            sleep(1)
            if (late := timed) and monotonic() > late[0]:
                pytest_timeout.timeout_timer(*late[1:])

    threading.Thread(target=watch, name="limit of time", daemon=True).start()


def pytest_timeout_set_timer(item: pytest.Item, settings: pytest_timeout.Settings) -> bool | None:
    """Have one thread watch all tests: pytest-timeout starts and joins one for each."""
    global timed
    if settings.method != "thread":
        return None
    start_to_watch()
    timed = monotonic() + settings.timeout, item, settings
    return True


def pytest_timeout_cancel_timer() -> None:
    """Tell the thread that the test has ended."""
    global timed
    timed = None


number_of_folder = itertools.count()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of the test's own, as pytest does, without reading the others' names."""
    name = re.sub(r"\W", "_", request.node.name)[:26]
    return tmp_path_factory.mktemp(f"{name}{next(number_of_folder)}", numbered=False)


def pytest_runtest_setup() -> None:
    """Ignore SIGPIPE as Python does, whatever a test before left: closed sockets end it."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> object:
    """In a long run, feed a test that takes nothing but a seed without Hypothesis between.

    It could not make such an input smaller, and takes ten times as long as most parsers do.
    """
    given = getattr(pyfuncitem.obj, "hypothesis", None)
    if not (EXAMPLES and given and "chance" in given.inner_test.__annotations__):
        return None
    from foreign import Chance

    fixtures = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    for _ in range(int(EXAMPLES)):
        chance = Chance(os.urandom(8))
        try:
            given.inner_test(**fixtures, chance=chance)
        except Exception as error:
            error.add_note(f"The input was {chance!r}")
            raise
    return True
