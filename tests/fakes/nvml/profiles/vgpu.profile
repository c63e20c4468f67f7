# A virtual machine's share of an A40. Invented, after public listings.
driver 580.95.05
cuda 13000
gpu
name NVIDIA A40-24Q
uuid GPU-7a400000-0000-4000-8000-000000000000
pci 00000000:02:01.0 0x223510DE 0x150C10DE
memory 25769803776 1572864000 24197988352 1048576
cc 8.6
virtualization 2
clocks 0 1740 7251 0
