"""Choose the fastest configuration: the measured winner of the shape class, else the candidate with the least estimate.

- estimate: the time of a candidate
- rates, h200.json: rates of GPUs, and the measured winners, as data
- winners: the table that `config="tune"` writes for a GPU
- products: the choice
- promising: the candidates that are worth timing
"""
