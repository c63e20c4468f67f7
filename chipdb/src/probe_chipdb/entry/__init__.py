"""What people write: TOML files of chips, architectures and sources, read, judged, and packed."""
