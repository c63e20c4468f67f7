"""A prober of Arm Mali GPUs, whichever of the four kernel drivers runs them."""
