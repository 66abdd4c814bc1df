"""Programs as folders that need only NumPy."""
