"""`python -m probe_core` is the command `probe`."""

from probe_core.cli import entry

if __name__ == "__main__":
    entry()
