"""From a kernel and its arguments to a launch, on the emulator or on a GPU."""
