"""Run probers in children that may crash, hang or lie without cost to the host."""

MARK_VARIABLE = "PROBE_CORE_RUN"
"""Set in a child's environment to a number of its run, so that daemons it made can be found."""

NOTHING_LEFT = 79
"""Exit status of a supervisor that the host asked to end, once wait(2) knew no more children.

The first number behind those of sysexits.h.
"""

MAX_DEVICES = 256
"""Devices of one prober: twice what 16 GPUs are with seven partitions each.

This limit and the next count in the child, which stops there, and in the host, which believes no
child.
"""

MAX_FINDINGS = 64
"""Findings of one prober. Those beyond are dropped, since a prober that repeats one works still."""

MAX_FRAMES = 10_000
"""Frames of one process: each device may be announced many times. Reading them takes 0.1 s."""

FRAME_LIMIT = 1 << 20
"""Bytes of one frame at most: far more than any device known takes."""
