"""Small synthetic data files some programs want (numpy only, fixed seeds)."""

import os

import numpy as np


def text_corpus(cwd, directory, n_lines=400, seed=0):
    """train/valid/test.txt of a toy language with some grammar."""
    rs = np.random.RandomState(seed)
    subj = ["the_cat", "the_dog", "a_bird", "my_friend", "the_king", "a_child", "the_wind"]
    verb = ["sees", "likes", "follows", "finds", "hears", "loves", "misses"]
    obj = ["the_sea", "a_tree", "the_moon", "an_apple", "the_road", "a_song", "the_river"]
    adv = ["today", "often", "slowly", "never", "again", "quietly"]
    os.makedirs(os.path.join(cwd, directory), exist_ok=True)
    for name, n in (("train", n_lines), ("valid", n_lines // 8), ("test", n_lines // 8)):
        with open(os.path.join(cwd, directory, name + ".txt"), "w") as f:
            for _ in range(n):
                s = [subj[rs.randint(7)], verb[rs.randint(7)], obj[rs.randint(7)]]
                if rs.rand() < 0.5:
                    s.append(adv[rs.randint(6)])
                f.write(" " + " ".join(" ".join(s).replace("_", " ").split()) + " \n")


def binarized_mnist(cwd, path, n=500, side=28, seed=0):
    rs = np.random.RandomState(seed)
    proto = (rs.rand(10, 7, 7) > 0.6).astype(np.float32)
    big = np.kron(proto, np.ones((1, side // 7, side // 7), np.float32)).reshape(10, -1)

    def part(m):
        y = rs.randint(0, 10, m)
        flip = rs.rand(m, big.shape[1]) < 0.05
        return np.abs(big[y] - flip.astype(np.float32)).astype(np.float32)

    np.savez(os.path.join(cwd, path), train_data=part(n), valid_data=part(n // 2), test_data=part(n // 2))


def citation_graph(cwd, directory, nodes=280, feats=60, classes=7, edges=900, seed=0):
    """<directory>/cora.content and cora.cites in the layout of the Cora files."""
    rs = np.random.RandomState(seed)
    y = rs.randint(0, classes, nodes)
    w = rs.rand(classes, feats) < 0.2
    x = (w[y] & (rs.rand(nodes, feats) < 0.7)) | (rs.rand(nodes, feats) < 0.03)
    ids = rs.permutation(10 * nodes)[:nodes] + 1
    d = os.path.join(cwd, directory)
    os.makedirs(d, exist_ok=True)
    with open(os.path.join(d, "cora.content"), "w") as f:
        for i in range(nodes):
            f.write("\t".join([str(ids[i])] + [str(int(v)) for v in x[i]] + [f"class_{y[i]}"]) + "\n")
    with open(os.path.join(d, "cora.cites"), "w") as f:
        k = 0
        while k < edges:
            a, b = rs.randint(0, nodes, 2)
            if a != b and (y[a] == y[b] or rs.rand() < 0.15):
                f.write(f"{ids[a]}\t{ids[b]}\n")
                k += 1


def random_images(cwd, directory, n=8, side=32, seed=0):
    from PIL import Image

    rs = np.random.RandomState(seed)
    d = os.path.join(cwd, directory)
    os.makedirs(d, exist_ok=True)
    for i in range(n):
        small = rs.randint(0, 256, (side // 4, side // 4, 3)).astype(np.uint8)
        Image.fromarray(small).resize((side, side), Image.BILINEAR).save(os.path.join(d, f"{i:03d}.png"))
