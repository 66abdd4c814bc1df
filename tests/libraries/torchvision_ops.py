"""A plugin of pytest: torchvision's CUDA build beside torch's CPU build.

PyPI has no other build of torchvision for Linux. Its compiled part does not load without CUDA's libraries, and then
`import torchvision` fails, because it describes two operators that nobody has defined."""

from importlib.util import find_spec

import torch

torchvision = find_spec("torchvision")
if torchvision is not None:
    try:
        torch.ops.load_library(f"{torchvision.submodule_search_locations[0]}/_C.so")
    except OSError:
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor boxes, Tensor scores, float iou_threshold) -> Tensor")
