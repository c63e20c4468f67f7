"""A prober of AMD GPUs that reads only what the kernel already knows."""
