"""Casts, storage, random tensors, predicates."""
