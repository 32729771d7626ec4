"""The path of Hopper: tensor copies by one thread, products of warpgroups, mbarriers between them."""
