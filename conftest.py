"""What the tests of every distribution of the repository share.

They start from the same surroundings whatever a shell, a service or a CI job hands down, and the
inputs that Hypothesis makes up are the same for everybody.

Markers: `heavy` stands at the quarter of the tests that takes most of the time; the README's
command leaves them out and `.ci/run` runs them. `timeout(seconds)` stands at a test that may take
longer than the limit for every test, which pyproject.toml sets.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# pytest's importlib mode puts no test folder on the path; plugins' parsers are fuzzed alike.
sys.path.insert(0, str(Path(__file__).parent / "tests" / "fuzz"))

if os.environ.get("PRIVATE_NAMES"):  # before anything imports the core
    sys.path.insert(0, str(Path(__file__).parent / "tests" / "machines"))
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


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage while tests are collected: what that makes stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()  # not frozen: Hypothesis asks for referrers, and finds none that are


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
