"""The workloads, each written once against the torch API: `build(torch) -> Work`."""

import importlib

FILES = {
    "W1": "w1_scalar",
    "W2": "w2_moons",
    "W3": "w3_mlp",
    "W3b": "w3b_mlp_large",
    "W4": "w4_lenet",
    "W4b": "w4b_resnet",
    "W5": "w5_gpt",
    "W5b": "w5b_generate",
    "W6": "w6_lstm",
    "W7": "w7_elementwise",
    "W8": "w8_reductions",
    "W9": "w9_logistic",
    "W9b": "w9b_lbfgs",
    "W10": "w10_hessian",
    "W10b": "w10b_func_hessian",
}
COLD = ["W11", "W12", "W12b"]  # fresh process per repeat; see cold.py


def load(name):
    return importlib.import_module("workloads." + FILES[name])
