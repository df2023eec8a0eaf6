# SPDX-License-Identifier: Apache-2.0
"""train_torch.py CASE THREADS SECONDS LAYOUT MODE: what bench_train measures, by PyTorch. LAYOUT is contiguous or
channels_last; MODE is eager, deterministic, or compile. Prints "SAMPLES_PER_SECOND PEAK_BYTES GROWTH_BYTES PARAMETERS";
the growth is that since PyTorch was loaded. --version prints the version. The networks are those of train_cases.c."""
import pathlib
import re
import statistics
import sys
import time

import torch
from torch import nn


def conv_block(i, o, pool=1):
    layers = [nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers, *[nn.MaxPool2d(pool)] * (pool > 1))


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Sequential(conv_block(width, width), conv_block(width, width))

    def forward(self, x):
        return x + self.inner(x)


class Scale(nn.Module):
    def forward(self, x):
        return x * 0.125


class Attention(nn.Module):
    def __init__(self, width, causal):
        super().__init__()
        self.qkv, self.causal = nn.Linear(width, 3 * width), causal

    def forward(self, x):
        n, t, width = x.shape
        q, k, v = self.qkv(x).view(n, t, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return y.transpose(1, 2).reshape(n, t, width)


class Block(nn.Module):
    def __init__(self, width, causal):
        super().__init__()
        self.attend = nn.Sequential(nn.LayerNorm(width), Attention(width, causal), nn.Linear(width, width))
        self.think = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(),
                                   nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attend(x)
        return x + self.think(x)


class Position(nn.Module):
    def __init__(self, positions, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(positions, width) * 0.02)

    def forward(self, x):
        return x + self.weight


class Tokens(nn.Module):
    def forward(self, x):
        return x.flatten(2).transpose(1, 2)


class Mean(nn.Module):
    def forward(self, x):
        return x.mean(1)


def images(batch):
    return torch.rand(batch, 1, 28, 28), torch.arange(batch) % 10


def cnn():
    net = nn.Sequential(conv_block(1, 32), conv_block(32, 32, 2), conv_block(32, 64, 2), nn.Flatten(),
                        nn.Linear(3136, 128), nn.ReLU(inplace=True), nn.Linear(128, 10))
    return net, *images(128)


def resnet9():
    net = nn.Sequential(conv_block(1, 64), conv_block(64, 128, 2), Residual(128), conv_block(128, 256, 2),
                        conv_block(256, 512, 2), Residual(512), nn.MaxPool2d(3), nn.Flatten(),
                        nn.Linear(512, 10, bias=False), Scale())
    return net, *images(128)


def vit_tiny():
    net = nn.Sequential(nn.Conv2d(1, 64, 4, stride=4), Tokens(), Position(49, 64),
                        *[Block(64, causal=False) for _ in range(BLOCKS)], nn.LayerNorm(64), Mean(), nn.Linear(64, 10))
    return net, *images(64)


def gpt_mini():
    net = nn.Sequential(nn.Embedding(256, 128), Position(128, 128), *[Block(128, causal=True) for _ in range(BLOCKS)],
                        nn.LayerNorm(128), nn.Linear(128, 256))
    nn.init.normal_(net[0].weight, std=0.02)
    return net, torch.randint(256, (16, 128)), torch.arange(16 * 128) % 256


BLOCKS, HEADS = 4, 4
CASES = {"cnn": cnn, "resnet9": resnet9, "vit-tiny": vit_tiny, "gpt-mini": gpt_mini}


def peak_bytes():
    """Not getrusage's, which begins with what the process was before exec."""
    return int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path("/proc/self/status").read_text())[1]) * 1024


def main():
    case, threads, seconds, layout, mode = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4], sys.argv[5]
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(mode == "deterministic")
    before = peak_bytes()
    clock = time.process_time if threads == 1 else time.perf_counter
    net, x, labels = CASES[case]()
    if layout == "channels_last" and x.dim() == 4:
        net, x = net.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, nesterov=True)
    forward = torch.compile(net) if mode == "compile" else net

    def step():
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(forward(x).flatten(0, -2), labels).backward()
        optimizer.step()
    for _ in range(2):
        step()
    times, end = [], clock() + seconds
    while len(times) < 3 or clock() < end:
        start = clock()
        step()
        times.append(clock() - start)
    parameters = sum(p.numel() for p in net.parameters())
    print(f"{len(x) / statistics.median(times):.1f} {peak_bytes()} {peak_bytes() - before} {parameters}")


if sys.argv[1] == "--version":
    print(torch.__version__)
else:
    main()
