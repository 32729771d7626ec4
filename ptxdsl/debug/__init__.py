"""A debugger on the emulator: stops at Python lines and at findings, steps, and looks at registers and memory.

`pd.debug(kernel, grid, block, …)` is for scripts, `ptxdsl debug TARGET` for the terminal.
"""

from ptxdsl.debug.session import Debugger, Stop, debug

__all__ = ["Debugger", "Stop", "debug"]
