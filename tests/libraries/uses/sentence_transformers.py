import torch
from sentence_transformers import losses, util
from sentence_transformers.sentence_transformer.modules import Pooling

x, y = torch.randn(4, 8), torch.randn(3, 8)
print(util.cos_sim(x, y).tolist(), util.semantic_search(x, y, top_k=1)[0][0]["score"])
features = {"token_embeddings": torch.randn(2, 5, 8), "attention_mask": torch.tensor([[1] * 5, [1, 1, 1, 0, 0]])}
print(
    Pooling(8, "mean")(features)["sentence_embedding"].tolist(),
    losses.SiameseDistanceMetric.EUCLIDEAN(x[:3], y).tolist(),
)
