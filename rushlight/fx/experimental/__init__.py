"""torch.fx.experimental, as far as libraries ask it."""
