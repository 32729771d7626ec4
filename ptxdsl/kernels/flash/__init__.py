"""Parts of the attention kernel: its traits and parameters, the tile of a block, and the running softmax."""
