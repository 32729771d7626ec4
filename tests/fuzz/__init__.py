"""Two fuzzers.

- `python -m tests.fuzz --seed S --count N [--gpu]`: random PTX programs on the emulator, and on a GPU
- `python -m tests.fuzz.damage SEED COUNT`: damaged PTX for the parser

program, values: a program as a tree of statements; its inputs · generate: random programs · exclusions: what they leave
out, and why · machines: emulator, assembler, GPU · reduction: a failing program made small
"""
