import numpy as np
import torch
from sklearn.model_selection import cross_val_score
from skorch import NeuralNetClassifier

x = np.random.normal(size=(60, 4)).astype("float32")
y = (x[:, 0] > 0).astype("int64")
net = NeuralNetClassifier(
    torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)),
    criterion=torch.nn.CrossEntropyLoss,
    max_epochs=3,
    lr=0.1,
    verbose=0,
)
net.fit(x, y)
print(net.history[:, "train_loss"], net.predict_proba(x[:2]).tolist(), cross_val_score(net, x, y, cv=3).tolist())
