# A Jetson Orin (JetPack 6): one GPU, and NotSupported to nearly all. After nvitop#168.
driver 540.4.0
cuda 12060
gpu
name Orin (nvgpu)
on handle 0
on nvmlDeviceGetName 0
on * 3
