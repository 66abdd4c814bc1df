"""Archives of `torch.export.save`, .pt2."""
