"""Probers written for version 1 of probe-core's contract."""
