"""The mark that a prober's process puts in the place of a value which JSON cannot hold.

Both ends of the pipe know it: the encoder in the child writes it, validation in the parent
rejects the field that has it, with the reason.
"""

from __future__ import annotations

__all__ = ["INVALID"]

INVALID = "\x00invalid"
"""Key of the object that stands for such a value: ``{INVALID: reason}``.

A NUL cannot begin a key that an author wrote: the encoder of text keeps it, but no hardware
field is named so.
"""
