"""Images of containers, read where they lie: never unpacked, followed or executed."""
