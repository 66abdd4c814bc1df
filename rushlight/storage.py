"""torch.storage: the memory under tensors."""
from rushlight.ops.storage import TypedStorage as TypedStorage
from rushlight.ops.storage import UntypedStorage as UntypedStorage
