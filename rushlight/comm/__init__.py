"""Process groups and collectives, which torch.distributed offers."""
