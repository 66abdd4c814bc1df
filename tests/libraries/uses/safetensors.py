import tempfile

import torch
from safetensors.torch import load_file, save_file

x = {"a": torch.randn(3), "b": torch.arange(4), "c": torch.randn(2, 2).to(torch.bfloat16)}
with tempfile.NamedTemporaryFile(suffix=".safetensors") as file:
    save_file(x, file.name)
    print({k: v.tolist() for k, v in load_file(file.name).items()})
