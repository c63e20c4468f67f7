"""What the tests of every distribution of the repository share: how inputs are made up."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

# pytest's importlib mode puts no test folder on the path; plugins' parsers are fuzzed alike.
sys.path.insert(0, str(Path(__file__).parent / "tests" / "fuzz"))

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
