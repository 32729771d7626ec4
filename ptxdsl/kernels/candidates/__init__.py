"""The configurations that each path may use for a problem: short lists, from which `choose` takes one.

- facts: the sizes, types and layouts that a choice depends on, and their shape classes
- candidate: a configuration with what the estimate needs of its kernel
- sm80, sm90: the candidates of each path
"""
