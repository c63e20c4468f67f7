# The driver was upgraded and not reloaded (error 18). Invented.
driver 580.95.05
cuda 13000
on nvmlInit 18
gpu
name Tesla T4
uuid GPU-14000000-0000-4000-8000-000000000000
pci 00000000:04:00.0 0x1EB810DE 0x12A210DE
memory 16106127360 470810624 15632171008 3145728
cc 7.5
cores 2560
clocks 1590 1590 5001 1470
bus-width 256
pcie 3 16 3 16
