"""Programs as folders that need NumPy alone."""
