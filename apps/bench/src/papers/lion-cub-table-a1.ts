/**
 * Table A.1 of the Lion Cub paper: milliseconds of a training step of GPTs on H100s, two on each node. "Ethernet" is
 * sockets over InfiniBand.
 */
export interface ProfiledStep {
  readonly network: "Ethernet" | "InfiniBand";
  readonly bits: 1 | 4 | 8 | 16 | 32;
  readonly nodes: number;
  readonly ranks: number;
  readonly parameters: number; // millions
  readonly computing: number; // forward, backward and update
  readonly communication: number;
}

const row = (
  network: ProfiledStep["network"],
  bits: ProfiledStep["bits"],
  nodes: number,
  parameters: number,
  [forward, backward, update, communication]: readonly [number, number, number, number],
): ProfiledStep => ({
  network,
  bits,
  nodes,
  ranks: 2 * nodes,
  parameters,
  computing: forward + backward + update,
  communication,
});

// biome-ignore format: a table
export const tableA1: readonly ProfiledStep[] = [
  row("Ethernet", 32, 2, 350, [12.2, 48.9, 6.8, 344.0]),
  row("Ethernet", 16, 2, 350, [12.2, 48.4, 6.8, 180.8]),
  row("Ethernet", 8, 2, 350, [12.3, 48.6, 23.1, 87.7]),
  row("Ethernet", 4, 2, 350, [12.3, 49.0, 13.9, 48.9]),
  row("Ethernet", 32, 2, 774, [18.6, 134.2, 21.5, 756.3]),
  row("Ethernet", 16, 2, 774, [18.4, 134.5, 21.4, 404.6]),
  row("Ethernet", 8, 2, 774, [18.4, 134.2, 49.5, 195.9]),
  row("Ethernet", 4, 2, 774, [18.5, 133.9, 28.5, 117.0]),
  row("Ethernet", 1, 2, 774, [19.0, 134.4, 70.1, 142.7]),
  row("Ethernet", 32, 4, 774, [18.6, 134.2, 21.9, 1421.5]),
  row("Ethernet", 32, 4, 774, [18.2, 133.8, 21.4, 1435.9]),
  row("Ethernet", 8, 4, 774, [18.4, 134.6, 49.4, 336.4]),
  row("Ethernet", 4, 4, 774, [18.6, 132.2, 28.5, 275.7]),
  row("Ethernet", 4, 4, 774, [18.4, 131.0, 28.5, 211.9]),
  row("Ethernet", 4, 4, 774, [18.7, 131.6, 28.6, 252.9]),
  row("Ethernet", 1, 4, 774, [19.4, 134.5, 69.9, 162.5]),
  row("Ethernet", 32, 2, 1558, [36.6, 189.2, 50.4, 2299.4]),
  row("Ethernet", 8, 2, 1558, [36.3, 189.6, 103.4, 411.6]),
  row("Ethernet", 4, 2, 1558, [36.2, 189.5, 57.9, 216.8]),
  row("InfiniBand", 32, 2, 1558, [36.2, 189.1, 50.1, 159.5]),
  row("InfiniBand", 8, 2, 1558, [36.1, 189.4, 57.8, 25.3]),
  row("InfiniBand", 8, 2, 1558, [36.0, 188.3, 58.0, 25.2]),
  row("InfiniBand", 4, 2, 1558, [36.3, 189.3, 57.9, 44.5]),
];

/** Bits that cross the link of a rank for each of n values of so many bits: an all-reduce among P ranks. */
export const allReduceBits = ({ ranks, parameters, bits }: Pick<ProfiledStep, "ranks" | "parameters" | "bits">) =>
  ((2 * (ranks - 1)) / ranks) * parameters * 1e6 * bits;
