# SPDX-License-Identifier: Apache-2.0
"""An ordinary training script. It sets no seed and asks no library to be deterministic: alone, two runs of it differ.

    python3 train.py --out OUT [--workers N] [--epochs N] [--samples N]

Nothing in it knows of trainctl.
"""
import argparse
import gzip
import json
import os
import random
import struct

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

rng = np.random.default_rng()


def read_idx(path):
    with gzip.open(path, "rb") as f:
        magic, = struct.unpack(">I", f.read(4))
        if magic >> 8 != 8:
            raise SystemExit(f"{path}: not an idx file of bytes")
        shape = struct.unpack(">" + "I" * (magic & 255), f.read(4 * (magic & 255)))
        return np.frombuffer(f.read(), np.uint8).reshape(shape)


def find(folder):
    """The files by what they hold, in whatever order the folder lists them."""
    images, labels = {}, {}
    for name in os.listdir(folder):
        if name.endswith("-ubyte.gz"):
            (images if "images" in name else labels)[name[:5]] = read_idx(os.path.join(folder, name))
    if "train" not in images:
        raise SystemExit(f"{folder}: no Fashion-MNIST here; on Debian: apt-get install dataset-fashion-mnist")
    return images["train"], labels["train"]


class Fashion(Dataset):
    """Fashion-MNIST with flips from `random`, shifts from NumPy's global generator and noise from one of our own."""

    def __init__(self, folder, count):
        images, labels = find(folder)
        self.images, self.labels = images[:count], labels[:count]

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        image = self.images[i].astype(np.float32) / 255
        if random.random() < 0.5:
            image = image[:, ::-1]
        image = np.roll(image, np.random.randint(-2, 3), axis=1)
        image = image + rng.normal(0, 0.02, image.shape).astype(np.float32)
        return torch.from_numpy(image[None].copy()), int(self.labels[i])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1)
        self.norm = nn.BatchNorm2d(16)
        self.hidden, self.out = nn.Linear(32 * 49, 64), nn.Linear(64, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.out(F.dropout(F.relu(self.hidden(x.flatten(1))), 0.25, self.training))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--samples", type=int, default=2048)
    options = parser.parse_args()
    loader = DataLoader(Fashion(options.data, options.samples), batch_size=64, shuffle=True, num_workers=options.workers)
    net = Net()
    groups = {"conv1", "conv2", "norm", "hidden", "out"}  # a set of texts: its order is another one in each process
    optimizer = torch.optim.AdamW([{"params": getattr(net, g).parameters(), "lr": 1e-3 / (1 + i)} for i, g in enumerate(groups)])
    history = []
    for epoch in range(options.epochs):
        total, correct = 0.0, 0
        for images, labels in loader:
            logits = net(images)
            loss = F.cross_entropy(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(labels)
            correct += (logits.argmax(1) == labels).sum().item()
        history.append({"loss": total / len(loader.dataset), "accuracy": correct / len(loader.dataset)})
        print(f"epoch {epoch + 1}: loss {history[-1]['loss']:.4f}, accuracy {100 * history[-1]['accuracy']:.2f} %", flush=True)
    torch.save(net.state_dict(), os.path.join(options.out, "model.pt"))
    with open(os.path.join(options.out, "metrics.json"), "w") as f:
        json.dump(history, f)


if __name__ == "__main__":
    main()
