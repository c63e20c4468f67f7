"""Part of the stand-in for Ray."""
