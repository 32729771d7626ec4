"""A debugger on the emulator: breakpoints at Python lines, stops at findings, single steps, registers and memory.

`pd.debug(kernel, grid, block, …)` is for scripts, `ptxdsl debug TARGET` for the terminal.
"""

from ptxdsl.debug.session import Debugger, Stop, debug

__all__ = ["Debugger", "Stop", "debug"]
