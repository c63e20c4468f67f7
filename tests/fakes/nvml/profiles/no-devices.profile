# The library loads and shows no GPU. Invented.
driver 580.95.05
cuda 13000
