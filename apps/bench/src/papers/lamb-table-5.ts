/**
 * Table 5 of the 1-bit LAMB paper: milliseconds of a step of BERT-Large with sequences of 128 tokens. §6 has the
 * networks: Ethernet of 4.1 Gbit/s effective and four GPUs on a node, InfiniBand near 100 Gbit/s and eight.
 */
export interface ProfiledBert {
  readonly network: "Ethernet" | "InfiniBand";
  readonly nodes: number;
  readonly gpus: number;
  readonly batch: number; // thousands of rows
  readonly computing: number; // all but the all-reduce
  readonly allReduce: number;
}

const row = (
  network: ProfiledBert["network"],
  nodes: number,
  batch: number,
  [forward, allReduce, backward, step]: readonly [number, number, number, number],
): ProfiledBert => ({
  network,
  nodes,
  gpus: nodes * (network === "Ethernet" ? 4 : 8),
  batch,
  computing: forward + backward + step,
  allReduce,
});

// biome-ignore format: a table
export const table5: readonly ProfiledBert[] = [
  row("Ethernet", 64, 8, [55, 3579, 117, 191]),
  row("Ethernet", 64, 16, [111, 3533, 227, 195]),
  row("Ethernet", 64, 32, [224, 3599, 462, 233]),
  row("Ethernet", 64, 64, [445, 3674, 919, 215]),
  row("Ethernet", 32, 8, [112, 3759, 233, 121]),
  row("Ethernet", 16, 8, [223, 3433, 464, 109]),
  row("Ethernet", 8, 8, [445, 3528, 923, 38]),
  row("Ethernet", 4, 8, [881, 3436, 1827, 33]),
  row("Ethernet", 2, 8, [1773, 2087, 3696, 31]),
  row("Ethernet", 1, 8, [3532, 234, 7329, 30]),
  row("InfiniBand", 16, 8, [96, 335, 179, 36]),
  row("InfiniBand", 16, 16, [192, 346, 356, 37]),
  row("InfiniBand", 16, 32, [381, 377, 714, 37]),
  row("InfiniBand", 16, 64, [770, 422, 1422, 32]),
  row("InfiniBand", 8, 8, [192, 332, 352, 34]),
  row("InfiniBand", 4, 8, [384, 339, 711, 31]),
  row("InfiniBand", 2, 8, [768, 270, 1436, 31]),
  row("InfiniBand", 1, 8, [1534, 167, 2869, 31]),
];

export const bitsPerSecond = { Ethernet: 4.1e9, InfiniBand: 100e9 } as const;

const parameters = 340e6; // BERT-Large, §6

/** Predicted milliseconds of the all-reduce of all gradients in fp16, around a ring of all GPUs. */
export function predictedAllReduce({ network, gpus }: ProfiledBert): number {
  const bits = ((2 * (gpus - 1)) / gpus) * parameters * 16;
  return (1000 * bits) / bitsPerSecond[network];
}
