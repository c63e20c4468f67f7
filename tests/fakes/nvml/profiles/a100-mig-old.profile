# A driver before 470 names its instances after the parent. Invented.
driver 460.91.03
cuda 11020
gpu
name NVIDIA A100-SXM4-40GB
uuid GPU-d1000000-0000-4000-8000-000000000000
pci 00000000:3B:00.0 0x20B010DE 0x134F10DE
memory 42949672960 432013312 42485153792 32505856
cc 8.0
cores 6912
clocks 1410 1410 1215 1290
bus-width 5120
pcie 4 16 4 16
mig-mode 1 1 7
memory-v1-only
mig 0
name NVIDIA A100-SXM4-40GB MIG 1g.5gb
uuid MIG-GPU-d1000000-0000-4000-8000-000000000000/7/0
instance 7 0
attributes 14 4864 1 1
