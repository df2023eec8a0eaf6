# SPDX-License-Identifier: Apache-2.0
"""engine_torch.py gemm M N K | train THREADS: what bench_engine measures, by PyTorch. --version prints its version."""
import sys
import time

import torch

BATCH, ROUNDS = 128, 12


def best(work, step):
    rate = 0
    for _ in range(ROUNDS):
        start = time.perf_counter()
        step()
        rate = max(rate, work / (time.perf_counter() - start))
    return rate


def gemm(m, n, k):
    torch.set_num_threads(1)
    a, b, c = torch.rand(m, k), torch.rand(k, n), torch.empty(m, n)
    repeat = int(2e8 / (2 * m * n * k)) + 1

    def step():
        for _ in range(repeat):
            torch.mm(a, b, out=c)
    print(f"{best(2e-9 * m * n * k * repeat, step):.2f}")


def network():
    def block(i, o):
        return [torch.nn.Conv2d(i, o, 3, padding=1, bias=False), torch.nn.BatchNorm2d(o), torch.nn.ReLU(inplace=True)]
    return torch.nn.Sequential(*block(1, 16), torch.nn.MaxPool2d(2), *block(16, 32), torch.nn.MaxPool2d(2),
                               *block(32, 64), torch.nn.Flatten(), torch.nn.Linear(7 * 7 * 64, 10))


def train(threads):
    torch.set_num_threads(threads)
    rates = []
    for layout in (torch.contiguous_format, torch.channels_last):  # PyTorch at its best
        net = network().to(memory_format=layout)
        x = torch.rand(BATCH, 1, 28, 28).to(memory_format=layout)
        labels = torch.arange(BATCH) % 10

        def step():
            net.zero_grad(set_to_none=True)
            torch.nn.functional.cross_entropy(net(x), labels).backward()
        rates.append(best(BATCH, step))
    print(f"{max(rates):.0f}")


if sys.argv[1] == "--version":
    print(torch.__version__)
elif sys.argv[1] == "gemm":
    gemm(*map(int, sys.argv[2:5]))
else:
    train(int(sys.argv[2]))
