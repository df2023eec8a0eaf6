# SPDX-License-Identifier: Apache-2.0
"""loader_torch.py FOLDER WORKERS EPOCHS: images per second of a PyTorch DataLoader that does what bench_loader does.

Per sample, in Dataset.__getitem__, with tensor operations: random crop of 28 with padding 2, random horizontal flip
with p = 0.5, to float, normalize (scale and mean folded into one subtraction and one product). Places are drawn
with Python's `random`, which is several times faster here than a tensor of two numbers. Batches of 128, shuffled. Prints the images per second of each epoch
after the first, one a line; --version prints PyTorch's version.
"""
import gzip
import pathlib
import random
import sys
import time

import numpy
import torch
from torch.utils.data import DataLoader, Dataset


def read(path, offset):
    with gzip.open(path) as f:
        return torch.from_numpy(numpy.frombuffer(f.read(), numpy.uint8, offset=offset).copy())


class FashionMnist(Dataset):
    def __init__(self, folder):
        folder = pathlib.Path(folder)
        self.images = read(folder / "train-images-idx3-ubyte.gz", 16).reshape(-1, 1, 28, 28)
        self.labels = read(folder / "train-labels-idx1-ubyte.gz", 8).long()

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        image = torch.nn.functional.pad(self.images[i], (2, 2, 2, 2))
        top, left = random.randrange(5), random.randrange(5)
        image = image.narrow(1, top, 28).narrow(2, left, 28)
        if random.random() < 0.5:
            image = image.flip(-1)
        return image.float().sub_(0.2860 * 255).mul_(1 / (0.3530 * 255)), self.labels[i]


def main():
    if sys.argv[1] == "--version":
        print(torch.__version__)
        return
    torch.manual_seed(1029)
    random.seed(1029)
    torch.set_num_threads(1)
    data = FashionMnist(sys.argv[1])
    loader = DataLoader(data, batch_size=128, shuffle=True, num_workers=int(sys.argv[2]))
    for epoch in range(int(sys.argv[3]) + 1):
        begin = time.perf_counter()
        total = 0.0
        for images, _ in loader:
            total += float(images[0, 0, 0, 0])
        if epoch > 0:
            print(f"{len(data) / (time.perf_counter() - begin):.0f}", flush=True)


main()
