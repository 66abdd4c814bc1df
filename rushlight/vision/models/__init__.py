"""Networks for pictures, with torchvision's names, weights' names and first values: resnet18() and
the like.

Nothing is downloaded: `weights=` asks for a file in `torch.hub.get_dir()`/checkpoints, and says
where it is to be had."""

# ruff: noqa: F403 - the names stand in __all__ of each part
from rushlight.vision.models.alexnet import *
from rushlight.vision.models.densenet import *
from rushlight.vision.models.efficientnet import *
from rushlight.vision.models.googlenet import *
from rushlight.vision.models.inception import *
from rushlight.vision.models.mnasnet import *
from rushlight.vision.models.mobilenetv2 import *
from rushlight.vision.models.mobilenetv3 import *
from rushlight.vision.models.resnet import *
from rushlight.vision.models.shufflenetv2 import *
from rushlight.vision.models.squeezenet import *
from rushlight.vision.models.vgg import *
from rushlight.vision.models.vision_transformer import *
from rushlight.vision.models.weights import (
    WeightsEnum as WeightsEnum,
    get_model as get_model,
    get_model_builder as get_model_builder,
    get_model_weights as get_model_weights,
    get_weight as get_weight,
    list_models as list_models,
)
