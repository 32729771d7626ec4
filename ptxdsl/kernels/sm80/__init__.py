"""The path of every GPU since Ampere: cp.async and mma.sync.

- tiling, tile, traits: `WarpTiling`, tiles in shared memory, the traits
- ring: `CpAsyncRing`, shared memory
- copies, pixels: cp.async loads of matrices and of images
- mma, fragments: `FragmentMma`: ldmatrix and mma.sync
"""
