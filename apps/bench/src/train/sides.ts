/** The sides that `bench train` compares: methods of exchanging gradients, ours and PyTorch's. */
import type { algorithms, gradientCompressions } from "@terse/optimizers";

/** One of our methods, in a host's Node process. */
export interface OurSide {
  readonly name: string;
  readonly optimizer: keyof typeof algorithms;
  /** Options of the optimizer; Lion's of `host.ts` unless given. */
  readonly options?: object;
  /** What matrix methods do not take goes to Lion. */
  readonly others?: true;
  /** How mean gradients are compressed. */
  readonly gradient?: { readonly name: keyof typeof gradientCompressions; readonly options: object };
  readonly overlap: "on" | "off";
  /** The type of averaged gradients on the wire. */
  readonly dense?: "f32" | "bf16";
  /** No exchange: the cost of the step alone. */
  readonly alone?: boolean;
  /** The peer that `speedup_over_powersgd` compares it with; that of rank 2 unless given. */
  readonly powersgd?: string;
}

/** PyTorch's DistributedDataParallel on Gloo, in a host's Python process: peers/ddp_gpt.py. */
export interface PeerSide {
  readonly name: string;
  readonly hook: "none" | "fp16" | "powersgd" | "terse_torch";
  /** The rank of PowerSGD. */
  readonly rank?: number;
  /** Size of a bucket in megabytes; 0: one bucket; absent: DDP's default. */
  readonly bucketMegabytes?: number;
  readonly alone?: boolean;
}

export const ours: readonly OurSide[] = [
  { name: "lion fp32 without-overlap", optimizer: "lion", overlap: "off" },
  { name: "lion fp32 with-overlap", optimizer: "lion", overlap: "on" },
  { name: "lion bf16 without-overlap", optimizer: "lion", overlap: "off", dense: "bf16" },
  { name: "lion bf16 with-overlap", optimizer: "lion", overlap: "on", dense: "bf16" },
  { name: "lion-cub 1-bit without-overlap", optimizer: "lion-cub", overlap: "off" },
  { name: "lion-cub 1-bit with-overlap", optimizer: "lion-cub", overlap: "on" },
  { name: "lion no exchange", optimizer: "lion", overlap: "off", alone: true },
];

const rank2 = "pytorch ddp powersgd rank 2";
const rank32 = "pytorch ddp powersgd rank 32";

/** The peer of one of our sides whose PowerSGD has the same rank; rank 2 where ours has none. */
export const powersgdOf = (name: string): string =>
  [...ours, ...oursOfMethods].find((side) => side.name === name)?.powersgd ?? rank2;

/** Methods that send fewer bits in other ways, compared with PyTorch's PowerSGD of the same rank. */
export const oursOfMethods: readonly OurSide[] = [
  {
    name: "lion powersgd rank 2 without-overlap",
    optimizer: "lion",
    gradient: { name: "powersgd", options: { matrixApproximationRank: 2, startPowerSGDIter: 2 } },
    overlap: "off",
  },
  {
    name: "lion powersgd rank 2 with-overlap",
    optimizer: "lion",
    gradient: { name: "powersgd", options: { matrixApproximationRank: 2, startPowerSGDIter: 2 } },
    overlap: "on",
  },
  {
    name: "dion rank d/8 with-overlap",
    optimizer: "dion",
    options: { rank: 0.125 }, // 32
    others: true,
    overlap: "on",
    powersgd: rank32,
  },
  { name: "one-bit-lamb with-overlap", optimizer: "one-bit-lamb", options: { warmup: 2 }, overlap: "on" },
  { name: "one-bit-adam with-overlap", optimizer: "one-bit-adam", options: { warmup: 2 }, overlap: "on" },
  { name: "lion-cub 1-bit with-overlap", optimizer: "lion-cub", overlap: "on" },
  { name: "lion no exchange", optimizer: "lion", overlap: "off", alone: true },
];

const fp16 = "pytorch ddp fp16 2 MB buckets";

export const peers: readonly PeerSide[] = [
  { name: "pytorch ddp fp32", hook: "none" },
  { name: fp16, hook: "fp16", bucketMegabytes: 2 },
  { name: rank2, hook: "powersgd", rank: 2, bucketMegabytes: 0 },
  { name: "pytorch no exchange", hook: "none", alone: true },
];

export const peersOfMethods: readonly PeerSide[] = [
  { name: rank32, hook: "powersgd", rank: 32, bucketMegabytes: 0 },
  ...peers.filter(({ hook, alone }) => hook === "powersgd" || alone),
];

/** Hooks of PyTorch's DDP: ours, which is a Python package, and PyTorch's. */
export const hooks: readonly PeerSide[] = [
  { name: "terse_torch 1-bit 2 MB buckets", hook: "terse_torch", bucketMegabytes: 2 },
  ...peers.filter(({ hook, alone }) => hook !== "none" || alone),
];

/** The hook that `step_over_fp16_hook` compares with. */
export const fp16Hook = fp16;
