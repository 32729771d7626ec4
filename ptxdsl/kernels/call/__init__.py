"""Calls: remembered, or checked, chosen, planned and launched; rooms for products, groups, convolutions, launching."""
