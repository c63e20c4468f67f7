"""Name nvidia-ml-py's module, which the prober imports where it needs it.

It is the client of live figures, and of Windows: a bundle without it has neither.
"""

hiddenimports = ["pynvml"]
