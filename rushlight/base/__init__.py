"""The lowest layer: utilities without tensors, importing no other layer."""
