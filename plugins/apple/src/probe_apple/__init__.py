"""A prober of the GPUs of Macs, and of the Neural Engine of Apple silicon."""
