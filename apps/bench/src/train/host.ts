/** One rank of `bench train`. Every side has its own model, and takes steps on request. */
import { rmSync, writeFileSync } from "node:fs";
import { saveModel } from "@terse/checkpoint";
import { type Group, joinWorld, loopback } from "@terse/collectives";
import { type Dataset, datasets, type TextBatch } from "@terse/data";
import { dense as denseMeans } from "@terse/exchange";
import { Gpt, gptPresets } from "@terse/models";
import {
  type Algorithm,
  algorithms,
  compressed,
  type GradientCompression,
  gradientCompressions,
  Optimizer,
} from "@terse/optimizers";
import { Arena, manualSeed, scope, setNumThreads } from "@terse/tensor";
import { bytesOnLink, serve } from "../hosts/serve.ts";
import { Peer } from "../peer.ts";
import { rowsOfBytes } from "../rows-of-bytes.ts";
import type { OurSide, PeerSide } from "./sides.ts";

/** One step of one rank. */
export interface Step {
  readonly milliseconds: number;
  readonly loss: number;
  /** Waiting for messages after backward; for a peer the time after its last gradient, which includes its hook. */
  readonly exposedMilliseconds: number;
  /** Bytes that this rank sent; peers do not report them. */
  readonly bytes?: number;
}

export interface Steps {
  readonly steps: readonly Step[];
  /** All bytes that left this host meanwhile, with packet headers; undefined where it has no link of its own. */
  readonly linkBytes: number | undefined;
}

const shape = gptPresets.small;
const batchSize = 4;
const lion = { lr: 3e-4, beta1: 0.9, beta2: 0.99, weightDecay: 0.1 };

setNumThreads(1);
const world = await joinWorld();
const folder = `${process.env["TERSE_BENCH_CONTROL"]}-rank-${world.rank}`;

class Ours {
  readonly #model = seeded();
  readonly #arena = new Arena(this.#model);
  readonly #optimizer: Optimizer;
  readonly #group: Group;
  #data: Dataset | undefined;

  constructor({ optimizer, options, others, gradient, overlap, dense = "f32", alone }: OurSide, group: Group) {
    this.#group = alone ? loopback(1)[0]! : group;
    const create = (name: keyof typeof algorithms, options: object) =>
      (algorithms[name] as (options: object) => Algorithm)(options);
    const { lr: _, ...lionOptions } = lion;
    const plain = create(optimizer, options ?? lionOptions);
    const compress = gradient && (gradientCompressions[gradient.name] as (options: object) => GradientCompression);
    const isOther = ({ role }: { role: string }) => role !== "matrix";
    this.#optimizer = new Optimizer(this.#arena, this.#group, {
      algorithm: compress ? compressed(plain, compress(gradient.options)) : plain,
      ...(others && { groups: [{ match: isOther, algorithm: create("lion", lionOptions) }] }),
      overlap,
      compareEvery: 0,
      schemes: { means: denseMeans(dense) },
    });
  }

  async steps(count: number): Promise<Step[]> {
    this.#data ??= await batches();
    const steps: Step[] = [];
    for (let i = 0; i < count; i++) steps.push(await this.#step());
    return steps;
  }

  async close(): Promise<void> {
    await this.#data?.[Symbol.asyncDispose]();
  }

  async #step(): Promise<Step> {
    const [batch] = (await this.#data!.next()) as TextBatch[];
    const began = performance.now();
    return scope(async () => {
      this.#arena.replaceGradients();
      const loss = this.#model.loss(batch!);
      const value = loss.item();
      await this.#optimizer.begin({ lr: lion.lr, loss: value });
      await loss.backward();
      const { exposedSeconds, bytes } = await this.#optimizer.step({ lr: lion.lr, loss: value });
      return {
        milliseconds: performance.now() - began,
        exposedMilliseconds: 1000 * exposedSeconds,
        bytes,
        loss: value,
      };
    });
  }
}

function seeded(): Gpt {
  manualSeed(0);
  return new Gpt(shape);
}

const batches = () =>
  datasets.text.open(
    { tokenizer: "bytes", validationFraction: 0.1 },
    { batchSize, seed: 0, rank: world.rank, ranks: world.size, length: shape.context, thread: true },
  );

const sides = new Map<string, Ours>();
let peer: Peer | undefined;

await serve({
  /** Opens one of our sides, with its own connections. */
  async open(side: OurSide) {
    sides.set(side.name, new Ours(side, (await world.split(0))!));
  },

  /** Starts PyTorch, with the same weights and the same batches. */
  async openPeers({ peers, steps }: { peers: readonly PeerSide[]; steps: number }) {
    await saveModel(folder, seeded().namedParameters(), {});
    await using data = await batches();
    const rows: Buffer[] = [];
    for (let step = 0; step < steps; step++) rows.push(await rowsOfBytes(await data.next()));
    writeFileSync(`${folder}/tokens`, Buffer.concat(rows));
    peer = await Peer.start("ddp_gpt.py", [JSON.stringify({ shape, batchSize, lion, folder, peers })]);
  },

  async run({ side, steps }: { side: string; steps: number }): Promise<Steps> {
    const mine = sides.get(side);
    const before = bytesOnLink();
    const taken = mine ? await mine.steps(steps) : (await peer!.ask<{ steps: Step[] }>(`${side}\t${steps}`)).steps;
    return { steps: taken, linkBytes: before === undefined ? undefined : bytesOnLink()! - before };
  },

  async close() {
    for (const side of sides.values()) await side.close();
    await peer?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
    await world.close();
  },
});
