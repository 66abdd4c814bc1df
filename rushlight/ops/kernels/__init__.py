"""Array functions by op name: what the names in a rule mean in the world of arrays. NumPy's where it has them."""
