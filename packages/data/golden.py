"""What a seed means, written down once more: rows of data are the same on every machine and in every version.

Philox, the permutation of samples, the shifts of text, masks, and the choices of augmentations follow their definitions
in plain Python; operations on pixels are torchvision's. Writes golden.json; with --check it compares, and writes
nothing.

Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3", section 3.2; Black and Rogaway 2002, "Ciphers with
arbitrary finite domains", sections 2 and 3. The papers of the augmentations are in src/images/augment/.
"""

import hashlib
import json
import math
import sys
from pathlib import Path

import numpy as np
from PIL import Image
from torchvision.transforms import AutoAugment, AutoAugmentPolicy, autoaugment
from torchvision.transforms.functional import InterpolationMode

ORDER, AUGMENTATION, MIXING, MASKING, PARTNER, SHIFT = 1, 2, 3, 4, 6, 7  # what numbers are for
MASK = 2**32 - 1


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & MASK, (a >> 32) ^ c[3] ^ k[1], a & MASK]
        k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
    return c


# kat_vectors of the authors' Random123
assert philox([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
assert philox([MASK] * 4, [MASK] * 2) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]


def words(number):
    return [number & MASK, number >> 32]


class Numbers:
    """Those of (seed, position, purpose), four words for each block."""

    def __init__(self, seed, position, purpose):
        self.key, self.position, self.purpose, self.drawn = words(seed), words(position), purpose, 0

    def word(self):
        block, place = divmod(self.drawn, 4)
        self.drawn += 1
        return philox([*self.position, block, self.purpose << 24], self.key)[place]

    def uniform(self):
        high, low = self.word() >> 5, self.word() >> 6
        return (high * 2**26 + low) / 2**53

    def below(self, n):
        return math.floor(self.uniform() * n)

    def chance(self, p):
        return self.uniform() < p


def permuted(i, n, seed, epoch):
    bits = max(1, ((n - 1).bit_length() + 1) // 2)  # of each half
    while True:
        left, right = i >> bits, i & (2**bits - 1)
        for step in range(6):
            word = philox([right, *words(epoch), ORDER << 24 | step], words(seed))[0]
            left, right = right, left ^ (word & (2**bits - 1))
        i = left << bits | right
        if i < n:
            return i


def masked(tokens, places, fraction, mask, vocabulary, random):
    tokens, labels, left = list(tokens), [-100] * len(tokens), list(places)
    chosen = max(1, math.floor(fraction * len(places) + 0.5))
    for i in range(chosen):
        j = i + random.below(len(left) - i)
        left[i], left[j] = left[j], left[i]
        place = left[i]
        labels[place] = tokens[place]
        way = random.below(10)
        if way < 8:
            tokens[place] = mask
        elif way == 8:
            tokens[place] = random.below(vocabulary)
    return {"tokens": tokens, "labels": labels}


SIDE, IMAGES, CLASSES = 32, 4, 3
MEAN, DEVIATION = [0.5, 0.25, 0.125], [0.25, 0.5, 0.75]
SIGNED = ["ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness", "Color", "Contrast", "Sharpness"]
RAND = ["Identity", *SIGNED, "Posterize", "Solarize", "AutoContrast", "Equalize"]


def picture(number):
    y, x, channel = np.meshgrid(np.arange(SIDE), np.arange(SIDE), np.arange(3), indexing="ij")
    return ((5 * y + 3 * x + 71 * channel + 29 * number + (x * y >> 3)) & 255).astype(np.uint8)


def operation(pixels, name, share, sign):
    magnitude = (
        {
            "ShearX": 0.3,
            "ShearY": 0.3,
            "TranslateX": 150 / 331 * SIDE,
            "TranslateY": 150 / 331 * SIDE,
            "Rotate": 30,
            "Brightness": 0.9,
            "Color": 0.9,
            "Contrast": 0.9,
            "Sharpness": 0.9,
        }.get(name, 0)
        * share
        * (sign if name in SIGNED else 1)
    )
    if name == "Posterize":
        magnitude = 8 - round(4 * share)
    if name == "Solarize":
        magnitude = 255 - 255 * share
    image = Image.fromarray(pixels)
    return np.array(autoaugment._apply_op(image, name, magnitude, InterpolationMode.NEAREST, None))


def augmented(number, seed, position, options, purpose=AUGMENTATION):
    random = Numbers(seed, position, purpose)
    pixels = picture(number)
    if border := options.get("crop", 0):
        top, left = random.below(2 * border + 1), random.below(2 * border + 1)
        pixels = np.pad(pixels, ((border, border), (border, border), (0, 0)))[top : top + SIDE, left : left + SIDE]
    if options.get("flip") and random.chance(0.5):
        pixels = pixels[:, ::-1]
    pixels = np.ascontiguousarray(pixels)
    if options.get("policy") == "autoaugment":
        policies = AutoAugment(AutoAugmentPolicy.CIFAR10).policies
        for name, probability, magnitude in policies[random.below(len(policies))]:
            happens, sign = random.chance(probability), -1 if random.chance(0.5) else 1
            if happens:
                pixels = operation(pixels, name, (magnitude or 0) / 9, sign)
    if options.get("policy") == "randaugment":
        for _ in range(options["randOperations"]):
            name = RAND[random.below(len(RAND))]
            sign = -1 if random.chance(0.5) else 1
            pixels = operation(pixels, name, options["randMagnitude"] / 30, sign)
    image = ((pixels / 255 - np.array(MEAN)) / np.array(DEVIATION)).astype(np.float32).transpose(2, 0, 1).copy()
    if side := options.get("cutout", 0):
        y, x = random.below(SIDE), random.below(SIDE)
        top, bottom, left, right = box(y, x, side, side)
        image[:, top:bottom, left:right] = 0
    return image


def box(y, x, height, width):
    top, left = y - height // 2, x - width // 2
    return max(0, top), min(SIDE, top + height), max(0, left), min(SIDE, left + width)


def beta(alpha, random):
    while True:
        x, y = (random.uniform() for _ in range(2))
        x, y = (math.exp(math.log(u) / alpha) if u > 0 else 0 for u in (x, y))
        if 0 < x + y <= 1:
            return x / (x + y)


def row(number, seed, position, options):
    """The image and the shares of the classes, or its label."""
    with_mixup, with_cutmix = options.get("mixup", 0), options.get("cutmix", 0)
    if with_mixup == 0 and with_cutmix == 0:
        return augmented(number, seed, position, options), number % CLASSES
    random = Numbers(seed, position, MIXING)
    other = random.below(IMAGES)
    as_mixup = with_cutmix == 0 or (with_mixup > 0 and random.chance(0.5))
    share = beta(with_mixup if as_mixup else with_cutmix, random)
    size = math.floor(SIDE * math.sqrt(1 - share))
    y, x = random.below(SIDE), random.below(SIDE)
    top, bottom, left, right = box(y, x, size, size)
    image = augmented(number, seed, position, options)
    partner = augmented(other, seed, position, options, PARTNER)
    if as_mixup:
        image = (share * image.astype(np.float64) + (1 - share) * partner.astype(np.float64)).astype(np.float32)
    else:
        image[:, top:bottom, left:right] = partner[:, top:bottom, left:right]
        share = 1 - (bottom - top) * (right - left) / SIDE**2
    shares = np.zeros(CLASSES, np.float32)
    for label, part in ((number % CLASSES, share), (other % CLASSES, 1 - share)):
        shares[label] = np.float64(shares[label]) + part
    return image, [float(each) for each in shares]


def images(options):
    rows = [
        (seed, sample, position) for seed in (3, 2**40 + 7) for sample, position in ((1, 0), (3, 9), (2, 2**33 + 1))
    ]
    results = []
    for seed, sample, position in rows:
        image, label = row(sample, seed, position, options)
        sha256 = hashlib.sha256(image.astype("<f4").tobytes()).hexdigest()
        results.append({"seed": seed, "sample": sample, "position": position, "sha256": sha256, "label": label})
    return {"options": options, "rows": results}


golden = {
    "permutations": [
        {"n": n, "seed": seed, "epoch": epoch, "order": [permuted(i, n, seed, epoch) for i in range(min(n, 12))]}
        for n, seed, epoch in [
            (1, 0, 0),
            (2, 1, 0),
            (12, 7, 3),
            (16, 2**40 + 7, 0),
            (17, 7, 2**33),
            (60_000, 0, 1),
            (2**40 + 3, 5, 2),
        ]
    ],
    "shifts": [
        {"seed": seed, "epoch": epoch, "blockSize": size, "shift": Numbers(seed, epoch, SHIFT).below(size)}
        for seed, epoch, size in [(0, 1, 128), (7, 2, 1024), (2**40 + 7, 3, 16)]
    ],
    "masks": [
        {
            "seed": seed,
            "position": position,
            **masked(range(40), range(1, 39), 0.15, 99, 98, Numbers(seed, position, MASKING)),
        }
        for seed, position in [(3, 0), (2**40 + 7, 2**33 + 1)]
    ],
    "images": [
        images(options)
        for options in (
            {"crop": 4, "flip": True},
            {"policy": "autoaugment"},
            {"crop": 4, "policy": "randaugment", "randOperations": 3, "randMagnitude": 14},
            {"flip": True, "cutout": 16},
            {"mixup": 0.8},
            {"cutmix": 1},
            {"crop": 2, "flip": True, "policy": "autoaugment", "cutout": 8, "mixup": 0.5, "cutmix": 1},
        )
    ],
}

file = Path(__file__).with_name("golden.json")
if "--check" in sys.argv:
    sys.exit(None if json.loads(file.read_text()) == golden else f"{file} is not what golden.py gives")
file.write_text(json.dumps(golden, indent=1) + "\n")
