"""Run lanes: the machine, its processor and its scheduler.

- machine, core, residents: blocks start and end; the state of a launch; lanes of threads
- program, decode, operands, frames, special: kernels as steps, operands, registers of functions, special registers
- processor, executor, state, requests, results: execute one instruction for a group of lanes
- scheduler, schedules, flow, calls, library: the next lanes, branches, device functions, CUDA's built-in functions
- meetings, joint, barriers, cluster_barriers, registers: warp collectives, barriers, setmaxnreg
- deadlock, awaited, circles: prove that a launch cannot continue, and say why
- watching, view: callbacks before each step; a view of a stopped machine
"""
