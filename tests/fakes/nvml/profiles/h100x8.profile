# Eight H100 SXM behind four NVSwitches, the second one in use. Invented, after public listings.
driver 580.95.05
cuda 13000
gpu
name NVIDIA H100 80GB HBM3
uuid GPU-a1000000-0000-4000-8000-000000000000
pci 00000000:1B:00.0 0x233010DE 0x16C110DE
memory 85520809984 600834048 84913684480 6291456
cc 9.0
cores 16896
clocks 1980 1980 2619 1545
bus-width 5120
pcie 5 16 5 16
nvlinks 18 26562
fabric 3
nvlink 0-3 up switch 00000000:07:00.0
nvlink 4-8 up switch 00000000:08:00.0
nvlink 9-13 up switch 00000000:09:00.0
nvlink 14-17 up switch 00000000:0A:00.0
mig-mode 0 0 7
power 700000 700000 200000 700000
throttle 1
ecc 1 1
persistence 1
remapped 0 0 0 0
gpu
name NVIDIA H100 80GB HBM3
uuid GPU-a1000000-0000-4000-8000-000000000001
pci 00000000:43:00.0 0x233010DE 0x16C110DE
memory 85520809984 600834048 84913684480 6291456
cc 9.0
cores 16896
clocks 1980 1980 2619 1545
bus-width 5120
pcie 5 16 5 16
nvlinks 18 26562
fabric 3
nvlink 0-3 up switch 00000000:07:00.0
nvlink 4-8 up switch 00000000:08:00.0
nvlink 9-13 up switch 00000000:09:00.0
nvlink 14-17 up switch 00000000:0A:00.0
mig-mode 0 0 7
power 700000 700000 200000 700000
throttle 1
ecc 1 1
persistence 1
remapped 0 0 0 0
processes 3
gpu
name NVIDIA H100 80GB HBM3
uuid GPU-a1000000-0000-4000-8000-000000000002
pci 00000000:52:00.0 0x233010DE 0x16C110DE
memory 85520809984 600834048 84913684480 6291456
cc 9.0
cores 16896
clocks 1980 1980 2619 1545
bus-width 5120
pcie 5 16 5 16
nvlinks 18 26562
fabric 3
nvlink 0-3 up switch 00000000:07:00.0
nvlink 4-8 up switch 00000000:08:00.0
nvlink 9-13 up switch 00000000:09:00.0
nvlink 14-17 up switch 00000000:0A:00.0
mig-mode 0 0 7
power 700000 700000 200000 700000
throttle 1
ecc 1 1
persistence 1
remapped 0 0 0 0
gpu
name NVIDIA H100 80GB HBM3
uuid GPU-a1000000-0000-4000-8000-000000000003
pci 00000000:61:00.0 0x233010DE 0x16C110DE
memory 85520809984 600834048 84913684480 6291456
cc 9.0
cores 16896
clocks 1980 1980 2619 1545
bus-width 5120
pcie 5 16 5 16
nvlinks 18 26562
fabric 3
nvlink 0-3 up switch 00000000:07:00.0
nvlink 4-8 up switch 00000000:08:00.0
nvlink 9-13 up switch 00000000:09:00.0
nvlink 14-17 up switch 00000000:0A:00.0
mig-mode 0 0 7
power 700000 700000 200000 700000
throttle 1
ecc 1 1
persistence 1
remapped 0 0 0 0
gpu
name NVIDIA H100 80GB HBM3
uuid GPU-a1000000-0000-4000-8000-000000000004
pci 00000000:9D:00.0 0x233010DE 0x16C110DE
memory 85520809984 600834048 84913684480 6291456
cc 9.0
cores 16896
clocks 1980 1980 2619 1545
bus-width 5120
pcie 5 16 5 16
nvlinks 18 26562
fabric 3
nvlink 0-3 up switch 00000000:07:00.0
nvlink 4-8 up switch 00000000:08:00.0
nvlink 9-13 up switch 00000000:09:00.0
nvlink 14-17 up switch 00000000:0A:00.0
mig-mode 0 0 7
power 700000 700000 200000 700000
throttle 1
ecc 1 1
persistence 1
remapped 0 0 0 0
gpu
name NVIDIA H100 80GB HBM3
uuid GPU-a1000000-0000-4000-8000-000000000005
pci 00000000:C3:00.0 0x233010DE 0x16C110DE
memory 85520809984 600834048 84913684480 6291456
cc 9.0
cores 16896
clocks 1980 1980 2619 1545
bus-width 5120
pcie 5 16 5 16
nvlinks 18 26562
fabric 3
nvlink 0-3 up switch 00000000:07:00.0
nvlink 4-8 up switch 00000000:08:00.0
nvlink 9-13 up switch 00000000:09:00.0
nvlink 14-17 up switch 00000000:0A:00.0
mig-mode 0 0 7
power 700000 700000 200000 700000
throttle 1
ecc 1 1
persistence 1
remapped 0 0 0 0
gpu
name NVIDIA H100 80GB HBM3
uuid GPU-a1000000-0000-4000-8000-000000000006
pci 00000000:D1:00.0 0x233010DE 0x16C110DE
memory 85520809984 600834048 84913684480 6291456
cc 9.0
cores 16896
clocks 1980 1980 2619 1545
bus-width 5120
pcie 5 16 5 16
nvlinks 18 26562
fabric 3
nvlink 0-3 up switch 00000000:07:00.0
nvlink 4-8 up switch 00000000:08:00.0
nvlink 9-13 up switch 00000000:09:00.0
nvlink 14-17 up switch 00000000:0A:00.0
mig-mode 0 0 7
power 700000 700000 200000 700000
throttle 1
ecc 1 1
persistence 1
remapped 0 0 0 0
gpu
name NVIDIA H100 80GB HBM3
uuid GPU-a1000000-0000-4000-8000-000000000007
pci 00000000:DF:00.0 0x233010DE 0x16C110DE
memory 85520809984 600834048 84913684480 6291456
cc 9.0
cores 16896
clocks 1980 1980 2619 1545
bus-width 5120
pcie 5 16 5 16
nvlinks 18 26562
fabric 3
nvlink 0-3 up switch 00000000:07:00.0
nvlink 4-8 up switch 00000000:08:00.0
nvlink 9-13 up switch 00000000:09:00.0
nvlink 14-17 up switch 00000000:0A:00.0
mig-mode 0 0 7
power 700000 700000 200000 700000
throttle 1
ecc 1 1
persistence 1
remapped 0 0 0 0
