"""Which probers are installed, and which of them run: metadata only, no plugin is imported."""
