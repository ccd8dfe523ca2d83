"""Operations of NumPy and torch that do the same as our codecs, over N floats, on one thread.

Reads one operation a line and answers with its seconds as JSON: packbits, unpackbits, vote, vote in bytes, bf16, f16,
bf16 back, f16 back. A vote counts ELEMENTS bits of each of 8 ranks: it unpacks, sums, compares and packs, either in
fp32, as DeepSpeed's compressed all-reduce does, or in bytes, which is NumPy's fastest way. Arguments: N ELEMENTS.
"""

import json
import sys
import time

import numpy as np
import torch

torch.set_num_threads(1)
n, elements = int(sys.argv[1]), int(sys.argv[2])
rng = np.random.default_rng(1)
x = np.resize(rng.standard_normal(65521).astype(np.float32), n)
tensor = torch.from_numpy(x).clone()  # a copy without huge pages, which NumPy uses and our floats do not
bits = np.packbits(x >= 0, bitorder="little")
sums = np.zeros(n, np.float32)
# Touched before the measurement.
halves = {kind: torch.zeros(n, dtype=kind) for kind in (torch.bfloat16, torch.float16)}
votes = [np.packbits(rng.random(elements) < 0.5, bitorder="little") for _ in range(8)]


def unpackbits():
    signs = np.unpackbits(bits, count=n, bitorder="little").view(np.int8)
    signs *= 2
    signs -= 1
    np.add(sums, signs, out=sums)


def vote():
    total = np.zeros(elements, np.float32)
    for packed in votes:
        signs = np.unpackbits(packed, count=elements, bitorder="little").astype(np.float32)
        total += 2 * signs - 1
    return np.packbits(total >= 0, bitorder="little")


def vote_in_bytes():
    count = np.unpackbits(votes[0], count=elements, bitorder="little")
    for packed in votes[1:]:
        count += np.unpackbits(packed, count=elements, bitorder="little")
    return np.packbits(count >= 4, bitorder="little")


work = {
    "packbits": lambda: np.packbits(x >= 0, bitorder="little"),
    "unpackbits": unpackbits,
    "vote": vote,
    "vote in bytes": vote_in_bytes,
    "bf16": lambda: halves[torch.bfloat16].copy_(tensor),
    "f16": lambda: halves[torch.float16].copy_(tensor),
    "bf16 back": lambda: tensor.add_(halves[torch.bfloat16]),
    "f16 back": lambda: tensor.add_(halves[torch.float16]),
}

print(json.dumps({"numpy": np.__version__, "torch": torch.__version__}), flush=True)
for line in sys.stdin:
    run = work[line.strip()]
    begin = time.perf_counter()
    run()
    print(json.dumps({"seconds": time.perf_counter() - begin}), flush=True)
