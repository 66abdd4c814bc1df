"""torch.optim.adamw: AdamW under torch's path."""

from rushlight.optim.adam import AdamW as AdamW
