"""Run probers in children that may crash, hang or lie without cost to the host."""
