"""torch.utils.model_zoo: the old names of `torch.hub`'s functions for files of weights."""

from rushlight.serialization.hub import load_state_dict_from_url

load_url = load_state_dict_from_url
__all__ = ["load_state_dict_from_url", "load_url"]
