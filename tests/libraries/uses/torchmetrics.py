import torch
import torchmetrics

p, y = torch.rand(40, 3).softmax(-1), torch.randint(3, (40,))
metrics = torchmetrics.MetricCollection(
    [
        torchmetrics.Accuracy(task="multiclass", num_classes=3),
        torchmetrics.AUROC(task="multiclass", num_classes=3),
        torchmetrics.F1Score(task="multiclass", num_classes=3, average="macro"),
        torchmetrics.ConfusionMatrix(task="multiclass", num_classes=3),
    ]
)
metrics.update(p[:20], y[:20])
metrics.update(p[20:], y[20:])
print({k: v.tolist() for k, v in metrics.compute().items()})
print(
    torchmetrics.functional.image.structural_similarity_index_measure(
        torch.rand(1, 1, 16, 16), torch.rand(1, 1, 16, 16)
    ).item()
)
