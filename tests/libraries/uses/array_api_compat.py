import array_api_compat
import torch

x = torch.randn(4, 3)
xp = array_api_compat.array_namespace(x)
print(xp.std(x, axis=0, correction=1).tolist(), xp.matmul(x, xp.permute_dims(x, (1, 0))).tolist())
print(
    xp.unique_values(xp.asarray([3, 1, 3])).tolist(),
    xp.linalg.vector_norm(x).item(),
    array_api_compat.is_torch_array(x) + 0,
)
