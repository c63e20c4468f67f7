"""Run probers in children that may crash, hang or lie without cost to the host."""

MARK_VARIABLE = "PROBE_CORE_RUN"
"""Set in a child's environment to a number of its run, so that daemons it made can be found."""

NOTHING_LEFT = 79
"""Exit status of a supervisor that the host asked to end, once wait(2) knew no more children.

The first number behind those of sysexits.h.
"""
