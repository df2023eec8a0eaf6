# SPDX-License-Identifier: Apache-2.0
"""train_torch.py CASE THREADS SECONDS LAYOUT MODE: what bench_train measures, by PyTorch. LAYOUT is contiguous or
channels_last; MODE is eager, deterministic, or compile. Prints "SAMPLES_PER_SECOND PEAK_BYTES". --version prints the
version."""
import resource
import statistics
import sys
import time

import torch
from torch import nn


def cnn():
    def block(i, o):
        return [nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True)]
    net = nn.Sequential(*block(1, 32), *block(32, 32), nn.MaxPool2d(2), *block(32, 64), nn.MaxPool2d(2), nn.Flatten(),
                        nn.Linear(3136, 128), nn.ReLU(inplace=True), nn.Linear(128, 10))
    return net, torch.rand(128, 1, 28, 28), torch.arange(128) % 10


CASES = {"cnn": cnn}


def main():
    case, threads, seconds, layout, mode = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4], sys.argv[5]
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(mode == "deterministic")
    clock = time.process_time if threads == 1 else time.perf_counter
    net, x, labels = CASES[case]()
    if layout == "channels_last":
        net, x = net.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, nesterov=True)
    forward = torch.compile(net) if mode == "compile" else net

    def step():
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(forward(x), labels).backward()
        optimizer.step()
    for _ in range(2):
        step()
    times, end = [], clock() + seconds
    while len(times) < 3 or clock() < end:
        start = clock()
        step()
        times.append(clock() - start)
    print(f"{len(x) / statistics.median(times):.1f} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}")


if sys.argv[1] == "--version":
    print(torch.__version__)
else:
    main()
