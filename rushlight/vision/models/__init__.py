"""Networks for images, with torchvision's names, parameter names and initial values: resnet18() and so on.

Nothing is downloaded: `weights=` reads a file in `torch.hub.get_dir()`/checkpoints; the error for a missing file names
its address."""

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
from rushlight.vision.models.weights import WeightsEnum as WeightsEnum
from rushlight.vision.models.weights import get_model as get_model
from rushlight.vision.models.weights import get_model_builder as get_model_builder
from rushlight.vision.models.weights import get_model_weights as get_model_weights
from rushlight.vision.models.weights import get_weight as get_weight
from rushlight.vision.models.weights import list_models as list_models
