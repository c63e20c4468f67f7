"""Settings of Hypothesis that every test of the repository shares."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

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
