"""Parts of the attention kernels: traits and parameters, the tile of a block, the running softmax, the gradients."""
