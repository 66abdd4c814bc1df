"""torch.fx.experimental: the names that libraries import."""
