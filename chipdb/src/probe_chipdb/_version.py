"""The one place that holds the release: the calendar month of the data, then a counter."""

__version__ = "2026.11.0"
