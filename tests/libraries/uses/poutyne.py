import torch
from poutyne import ClipNorm, EarlyStopping, ExponentialLR, FBeta, Model, ModelCheckpoint, ReduceLROnPlateau
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.randn(96, 5)
label = (x[:, 0] > x[:, 1]).long() + (x[:, 2] > 1).long()
network = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3))
model = Model(network, "adam", "cross_entropy", batch_metrics=["accuracy"], epoch_metrics=[FBeta(average="macro")])
train = DataLoader(TensorDataset(x[:64], label[:64]), batch_size=16, shuffle=True)
valid = DataLoader(TensorDataset(x[64:], label[64:]), batch_size=16)
callbacks = [
    ClipNorm(network.parameters(), max_norm=1.0),
    ExponentialLR(gamma=0.9),
    ReduceLROnPlateau(monitor="val_loss", patience=1),
    EarlyStopping(patience=5),
    ModelCheckpoint("/tmp/rushlight_poutyne.pt", monitor="val_acc", mode="max", save_best_only=True, restore_best=True),
]
for logs in model.fit_generator(
    train, valid, epochs=4, callbacks=callbacks, progress_options={"coloring": False}, verbose=False
):
    print([logs[k] for k in ("loss", "acc", "fscore_macro", "val_loss", "val_acc")])
print(model.evaluate_generator(valid, verbose=False), model.predict(x[:2].numpy(), verbose=False).tolist())
print(model.train_on_batch(x[:8], label[:8]))
