import numpy as np
import torch
from pytorch_tabnet.pretraining import TabNetPretrainer
from pytorch_tabnet.tab_model import TabNetClassifier, TabNetRegressor

rng = np.random.default_rng(0)
x = rng.normal(size=(128, 6)).astype(np.float32)
x[:, 5] = rng.integers(0, 3, 128)
label = (x[:, 0] + (x[:, 5] == 1) > 0).astype(int)
common = {"cat_idxs": [5], "cat_dims": [3], "cat_emb_dim": 2, "n_d": 4, "n_a": 4, "n_steps": 2, "verbose": 0, "seed": 1}
fit = {"max_epochs": 2, "batch_size": 32, "virtual_batch_size": 16, "drop_last": False}
before = TabNetPretrainer(**common)
before.fit(x, eval_set=[x], **fit)
print(before.history["loss"])
model = TabNetClassifier(
    **common, mask_type="entmax", scheduler_fn=torch.optim.lr_scheduler.StepLR, scheduler_params={"step_size": 1}
)
model.fit(x, label, eval_set=[(x, label)], eval_metric=["auc", "logloss"], **fit)
print(model.history["loss"], model.predict_proba(x[:3]).tolist(), model.feature_importances_.tolist())
importance, masks = model.explain(x[:8])
print(importance.sum(), masks[0].sum())
path = model.save_model("/tmp/rushlight_tabnet")
other = TabNetClassifier()
other.load_model(path)
print(other.predict_proba(x[:2]).tolist())
regressor = TabNetRegressor(**common)
regressor.fit(x, x[:, :2], **fit)
print(regressor.history["loss"], regressor.predict(x[:2]).tolist())
