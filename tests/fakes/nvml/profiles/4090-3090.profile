# A gaming PC with two cards; the 4090's link rests at generation 1, as idle links do.
# The 3090's four NVLinks have no bridge. Invented, after public listings.
driver 580.95.05
cuda 13000
gpu
name NVIDIA GeForce RTX 4090
uuid GPU-b4090000-0000-4000-8000-000000000000
pci 00000000:01:00.0 0x268410DE 0x889A1043
memory 25757220864 362807296 24872222720 522190848
cc 8.9
cores 16384
clocks 3105 3105 10501 2415
bus-width 384
pcie 1 16 4 16
processes 1
gpu
name NVIDIA GeForce RTX 3090
uuid GPU-b3090000-0000-4000-8000-000000000001
pci 00000000:02:00.0 0x220410DE 0x38801462
memory 25769803776 330301440 25434259456 5242880
cc 8.6
cores 10496
clocks 2100 2100 9751 1950
bus-width 384
pcie 4 8 4 16
nvlinks 4 14062
nvlink 0-3 down gpu 00000000:00:00.0
