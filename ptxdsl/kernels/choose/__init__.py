"""Choose the fastest configuration: candidates, a cost model, and the rates of GPUs as data.

- candidates, model, rates, h200.json: the candidates of the sm_80 path, the model, its rates
- warpgroup_rates: the rates of the sm_90a path
- gemm, grouped, scaled, conv, conv_windows, conv_wgrad: the choice for each function
- product_options, warpgroup_products, warpgroups, swapped, large_products: configurations of the sm_90a path
- shape_class, promising, ways: candidates for tuning
"""
