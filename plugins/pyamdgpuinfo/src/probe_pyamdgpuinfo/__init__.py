"""A second opinion on AMD GPUs, from the library pyamdgpuinfo."""
