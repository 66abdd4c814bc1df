"""torch.fx.passes: what looks through graphs."""
