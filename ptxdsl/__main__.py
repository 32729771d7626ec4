"""`python -m ptxdsl` is the command `ptxdsl`."""

import sys

from ptxdsl.cli import main

if __name__ == "__main__":
    sys.exit(main())
