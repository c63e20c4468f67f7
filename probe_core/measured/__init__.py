"""Measured figures: how they are kept, when they still count, and how they compare with peaks.

`probe bench` writes them; a probe puts those of this node beside what it derives.
"""
