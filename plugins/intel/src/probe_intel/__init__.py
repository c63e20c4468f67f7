"""A prober of Intel's GPUs, NPUs and Gaudi accelerators that reads only sysfs."""
