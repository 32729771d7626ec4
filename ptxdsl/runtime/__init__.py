"""Launch a kernel on the emulator or on a GPU.

- variant: a kernel for one target and set of constants
- dispatch: `k[grid, block](…)`
- shape, values, arguments, structs: grid and block; each argument; all arguments; parameter groups as C structs
- launch, record, loaded: a checked launch, a record that repeats it, loaded modules
- streams, copies, tensor_maps: streams, numpy arrays to the GPU and back, tensor maps
- emulation, limits: launches on the emulator, and the limits of its target
- timing, variables: times of launches; module variables
- kept, imported: traces on disk, and whether the package has changed
"""
