"""What the tests of every distribution of the repository share: how inputs are made up."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# pytest's importlib mode puts no test folder on the path; plugins' parsers are fuzzed alike.
sys.path.insert(0, str(Path(__file__).parent / "tests" / "fuzz"))

if os.environ.get("PRIVATE_NAMES"):  # before anything imports the core
    sys.path.insert(0, str(Path(__file__).parent / "tests" / "machines"))
    from private_names import put_on_path

    put_on_path(os.environ["PRIVATE_NAMES"])

# A shell that starts the tests in the background has them, and all that they start, ignore Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What was measured on this computer (`probe bench`) is shown by each probe, and is no test's.
os.environ["XDG_STATE_HOME"] = os.path.join(os.devnull, "state")

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
