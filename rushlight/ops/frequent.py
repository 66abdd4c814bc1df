"""The ops that most programs use: loaded with the first missing name (base/lazy.py)."""

import rushlight.creation.ranges
import rushlight.ops.tensor.random_tensors
from rushlight.core.build import in_place_forms
from rushlight.ops.index import gather_scatter as scattering
from rushlight.ops.index import masks as masks
from rushlight.ops.math import complex as complex
from rushlight.ops.math import trigonometry as trigonometry
from rushlight.ops.reduce import reduce_api as reductions
from rushlight.ops.reduce import vector_norm as lengths

in_place_forms()
