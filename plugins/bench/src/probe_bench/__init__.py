"""What a node achieves: arithmetic and memory bandwidth, measured in a child under a lease."""
