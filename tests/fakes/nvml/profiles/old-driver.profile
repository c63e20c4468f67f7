# A driver of 2017 without most of today's functions: error 13 to each. Invented.
driver 384.111
gpu
name Tesla P100-PCIE-16GB
uuid GPU-16000000-0000-4000-8000-000000000000
pci 00000000:04:00.0 0x15F810DE 0x118F10DE
memory 17066885120 0 17066885120 0
memory-v1-only
cc 6.0
clocks 1328 1328 715 1189
pcie 3 16 3 16
on nvmlDeviceGetNumGpuCores 13
on nvmlDeviceGetMemoryBusWidth 13
on nvmlDeviceGetFieldValues 13
on nvmlDeviceGetMigMode 13
on nvmlDeviceGetComputeRunningProcesses_v3 13
on nvmlDeviceGetVirtualizationMode 13
