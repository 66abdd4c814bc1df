"""The lowest layer: no tensors, and no imports of other layers."""
