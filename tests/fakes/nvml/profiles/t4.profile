# One T4 of a cloud's virtual machine (passed through). Invented, after public listings.
driver 580.95.05
cuda 13000
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
virtualization 1
power 70000 70000 60000 70000
throttle 1
ecc 1 1
persistence 0
