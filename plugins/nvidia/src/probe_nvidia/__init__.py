"""NVIDIA GPUs for probe-core; the prober is `probe_nvidia.prober`."""
