"""Reading and writing by indices and masks."""
