"""A prober that reports what a file says, and misbehaves on command."""
