"""torch.ao.nn.quantized: embeddings of uint8; linear and recurrent layers are in `dynamic`."""

from rushlight.ao.nn.quantized import dynamic
from rushlight.ao.nn.quantized.embedding import Embedding, EmbeddingBag
from rushlight.base.missing_names import tell as _tell

__all__ = ["Embedding", "EmbeddingBag", "dynamic"]

_tell(__name__)
