"""`python -m probe_core` is the command `probe`."""

import sys

from probe_core.cli import main

sys.exit(main())
