"""A prober of the display adapters that the registry of Windows knows."""
