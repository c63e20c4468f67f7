"""A prober that reports what a file holds, and misbehaves on command."""
