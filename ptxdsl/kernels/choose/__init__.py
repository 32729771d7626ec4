"""Choose the fastest configuration: the measured winner of the shape class, else the candidate with the least estimate.

- facts: the sizes, types and layouts that a choice depends on, and their shape classes
- candidates, warpgroups: the candidates of the sm_80 and of the sm_90a path
- estimate: the time of a candidate
- rates, h200.json: rates of GPUs, and the measured winners, as data
- products: the choice
- promising: the candidates that are worth timing
"""
