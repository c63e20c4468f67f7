# A DGX Spark: no memory of its own, and a PCI domain other than 0. After nvitop#208.
driver 580.95.05
cuda 13000
gpu
name NVIDIA GB10
uuid GPU-f1000000-0000-4000-8000-000000000000
pci 0000000F:01:00.0 0x2E1210DE 0x000010DE
cc 12.1
cores 6144
clocks 3003 3003 0 0
pcie 1 1 1 1
