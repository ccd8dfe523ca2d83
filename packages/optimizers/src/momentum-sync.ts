/**
 * The ranks' own momenta drift apart. Here those of some layers are averaged every few steps. Ishikawa et al. 2024,
 * "Lion Cub", §5.1, https://arxiv.org/abs/2411.16462: needed with one bit and β₂ = 0.95, not with 0.99; the first and
 * the last layer are enough, every 10 steps.
 *
 *   m_t ← mean_ranks(m_t)                                       after the update of every k-th step t
 *   late:  m_{t+1} ← m_{t+1} + (mean_ranks(m_t) − m_t)          sent during step t + 1, and added after its update
 *
 * At once: all ranks then hold the same momentum in these layers, bit for bit. Late (the paper's §5.2 leaves it to
 * future work): their momenta then differ only by the own gradients of one step, and no rank waits unless the mean
 * takes longer than a step. A late mean is not part of the state: a run that resumes after step t still has m_t, and
 * starts the mean again.
 *
 * Sent every k steps: one mean of 4 bytes an element for all of them together, 2 (P − 1)/P · 4 n for n elements. Held
 * for a late mean: 8 bytes an element.
 */
import type { Group } from "@terse/collectives";
import { bytesOfRound, openExchange, standardSchemes } from "@terse/exchange";
import { OptionsError } from "@terse/options";
import { keep, noGrad, type Segment, scope, type Tensor } from "@terse/tensor";
import type { Alone, InRun } from "./define.ts";
import type { MomentumSyncOptions } from "./momentum-sync-options.ts";
import type { Span } from "./parameter-groups.ts";
import { runsOf } from "./runs.ts";

/**
 * What repeats in a run of Lion's votes: momenta are averaged now and then, and elements that have had a gradient are
 * counted.
 */
export function votesInRun(
  { momentumSync, maskEvery }: { momentumSync: MomentumSyncOptions; maskEvery: number },
  steps: number,
): InRun<object> {
  const { segments, every, late } = momentumSync;
  const periods = [every, maskEvery].filter((period) => period > 0);
  if (segments === "none" || every + Number(late) <= steps) return { periods };
  const problem = `${every}, and the run has ${steps} steps, so no momenta are averaged`;
  return { periods, remarks: [{ path: "momentumSync.every", problem, remedy: "take fewer, or more steps" }] };
}

/** A rank that votes alone is Lion, and its momenta are its own. */
export const aloneAsLion: Alone<{ momentumSync: MomentumSyncOptions }> = {
  is: "lion",
  problems: ({ momentumSync: { segments } }) =>
    segments === "none"
      ? []
      : [
          {
            path: "momentumSync.segments",
            problem: `${segments}, and with local a rank's momenta are its own`,
            remedy: "set it to none",
          },
        ],
};

interface LateMean {
  readonly step: number; // t
  readonly before: Tensor[]; // m_t
  readonly means: Tensor[]; // of m_t, once `arrived`
  readonly arrived: Promise<unknown>;
}

/**
 * One object for all algorithms that synchronise their momenta by the same options: algorithms that differ only in
 * their weight decay select layers together.
 */
export function momentumSyncsOf(spans: readonly Span[], all: readonly Segment[]): MomentumSync[] {
  const byOptions = Map.groupBy(spans, ({ algorithm }) => JSON.stringify(algorithm.momentumSync));
  return [...byOptions.values()].flatMap((own) => {
    const { momentumSync } = own[0]!.algorithm;
    return momentumSync && momentumSync.segments !== "none" ? [new MomentumSync(momentumSync, own, all)] : [];
  });
}

/** The momenta of spans whose algorithms have these options. */
export class MomentumSync {
  readonly #every: number;
  readonly #late: boolean;
  readonly #momenta: readonly Tensor[]; // m of each run of neighbouring segments
  // A second group of the same ranks: a late mean travels beside the next step's messages.
  #beside: Promise<Group> | undefined;
  #underWay: LateMean | undefined;
  /**
   * What was sent over the second group for the means that have arrived: the bytes of the others are not complete yet.
   */
  sentBeside = { bytes: 0, headerBytes: 0, messages: 0 };

  /**
   * Throws where the options select no segment of the spans. `all`: the segments of the whole model, for its first and
   * last layer.
   */
  constructor(options: MomentumSyncOptions, spans: readonly Span[], all: readonly Segment[]) {
    this.#every = options.every;
    this.#late = options.late;
    const isChosen = chosenOf(options.segments, all);
    this.#momenta = spans.flatMap((span) => chosenMomenta(span, isChosen));
    if (this.#momenta.length > 0) return;
    const { name, where = name } = spans[0]!.algorithm;
    const names = all.map(({ name, role }) => `${name} (${role})`).join(", ");
    throw new OptionsError([
      {
        path: `${where}.momentumSync.segments`,
        problem: `${JSON.stringify(options.segments)} means no parameter of this optimizer; there is ${names}`,
      },
    ]);
  }

  /** Whether it changes momenta at the end of step t. */
  changes(step: number): boolean {
    return this.#isDue(this.#late ? step - 1 : step);
  }

  /** Payload bytes that one rank sends in a step. A late mean counts in the step beside which it travels. */
  bytesSent(step: number, { rank, size }: Pick<Group, "rank" | "size">): number {
    if (!this.changes(step)) return 0;
    const means = this.#momenta.map(({ length }) => ({ kind: "mean", n: length }) as const);
    return bytesOfRound(means, size, rank, standardSchemes);
  }

  /** Before step t changes any momentum: starts a late mean that should be under way and is not, as after a resume. */
  async prepare(group: Group, step: number): Promise<void> {
    if (!this.#late || group.size === 1 || this.#underWay?.step === step - 1) return;
    await this.#settle();
    if (this.#isDue(step - 1)) await this.#begin(group, step - 1);
  }

  /** After the momenta of step t have been updated. */
  async synchronise(group: Group, step: number): Promise<void> {
    if (group.size === 1) return;
    if (!this.#late) {
      if (this.#isDue(step)) await average(group, this.#momenta);
      return;
    }
    const came = this.#underWay;
    if (came) {
      await came.arrived;
      this.sentBeside = (await this.#beside!).sent();
      scope(() =>
        noGrad(() => {
          for (const [i, m] of this.#momenta.entries()) m.add_(came.means[i]!.sub(came.before[i]!));
        }),
      );
      this.#drop();
    }
    if (this.#isDue(step)) await this.#begin(group, step);
  }

  /** Waits for a mean that is under way, and closes the second group. */
  async close(): Promise<void> {
    await this.#settle();
    await (await this.#beside)?.close();
  }

  #isDue(step: number): boolean {
    return step >= 0 && (step + 1) % this.#every === 0;
  }

  async #begin(group: Group, step: number): Promise<void> {
    this.#beside ??= group.split(0).then((beside) => beside!);
    const beside = await this.#beside;
    const copies = () => scope(() => noGrad(() => this.#momenta.map((m) => keep(m.clone()))));
    const [before, means] = [copies(), copies()];
    const arrived = average(beside, means);
    arrived.catch(() => {}); // `synchronise` throws it
    this.#underWay = { step, before, means, arrived };
  }

  async #settle(): Promise<void> {
    await this.#underWay?.arrived.catch(() => {}); // the group has failed, and its next operation throws the error
    this.#drop();
  }

  #drop(): void {
    for (const tensor of [...(this.#underWay?.before ?? []), ...(this.#underWay?.means ?? [])]) tensor.dispose();
    this.#underWay = undefined;
  }
}

/** Averages all of them in one message. */
async function average(group: Group, momenta: readonly Tensor[]): Promise<void> {
  const exchange = openExchange(group);
  const means = momenta.map((m) => exchange.mean(m));
  await Promise.allSettled(means); // their memory belongs to the exchange until all have ended
  await Promise.all(means);
}

type SegmentFilter = (segment: Segment) => boolean;

function chosenOf(segments: MomentumSyncOptions["segments"], all: readonly Segment[]): SegmentFilter {
  if (segments === "none") return () => false;
  if (segments === "all") return () => true;
  if (segments === "first-and-last") return firstAndLast(all);
  if ("role" in segments) return (segment) => segment.role === segments.role;
  const pattern = new RegExp(segments.match);
  return ({ name }) => pattern.test(name);
}

/**
 * The layers at both ends of the model: embeddings and head. Without embeddings the first module that has a matrix
 * counts; without a head the last one, unless the embedding is also the head (tied). The other parameters of a module,
 * its bias, go with it.
 */
function firstAndLast(all: readonly Segment[]): SegmentFilter {
  const matrices = all.filter(({ shape }) => shape.length > 1);
  const embeddings = all.filter(({ role }) => role === "embedding");
  const heads = all.filter(({ role }) => role === "head");
  const first = embeddings.length > 0 ? embeddings : matrices.slice(0, 1);
  const last = heads.length > 0 || embeddings.length > 0 ? heads : matrices.slice(-1);
  const modules = new Set([...first, ...last].map(moduleOf));
  return (segment) => modules.has(moduleOf(segment));
}

/** The module of a parameter; a parameter of the model itself is its own module. */
const moduleOf = ({ name }: Segment): string => (name.includes(".") ? name.slice(0, name.lastIndexOf(".")) : name);

/** Views of m over runs of chosen neighbouring segments, with the pads between them. */
function chosenMomenta({ vector: { segments, offset }, state }: Span, isChosen: SegmentFilter): Tensor[] {
  const follows = (before: Segment, segment: Segment) => segments[segments.indexOf(before) + 1] === segment;
  return runsOf(segments.filter(isChosen), follows).map((run) => {
    const [{ offset: begin }, last] = [run[0]!, run.at(-1)!];
    return keep(state.elements!["m"]!.narrow(0, begin - offset, last.offset + last.length - begin));
  });
}
