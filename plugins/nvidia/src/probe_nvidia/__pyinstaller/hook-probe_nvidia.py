"""Name nvidia-ml-py's module: the prober imports it by name, which PyInstaller does not see.

It is the definition of NVML's calls wherever the fast client differs or fails, so a bundle without
it answers only for drivers that both know.
"""

hiddenimports = ["pynvml"]
