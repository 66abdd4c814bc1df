"""What most programs call soon: the part that is loaded with the first name that is missing (ops/later.py)."""
import rushlight.ranges
import rushlight.sampling  # noqa: F401
from rushlight.ops import complex as complex
from rushlight.ops import lengths as lengths
from rushlight.ops import masks as masks
from rushlight.ops import reductions as reductions
from rushlight.ops import scattering as scattering
from rushlight.ops import trigonometry as trigonometry
from rushlight.ops.build import in_place_forms

in_place_forms()
