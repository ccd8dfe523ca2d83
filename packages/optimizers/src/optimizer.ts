/**
 * One algorithm (or several, by parameter group) at work on a model's arena, together with the other ranks.
 * What all algorithms share lives here once: groups, clipping, refusing a bad step, counting, comparing the ranks.
 */
import type { Group } from "@terse/collectives";
import { meanBytes, openExchange, type RefusalReason, type StepExchange } from "@terse/exchange";
import { useThreads } from "@terse/native-optimizers";
import { type Arena, keep, noGrad, numThreads, type Segment, type Tensor } from "@terse/tensor";
import type { Algorithm, OptimizerExchange, State } from "./algorithm.ts";
import { clipFactor, norm, usable } from "./clipping.ts";
import { compareRanks } from "./fingerprint.ts";

export interface OptimizerOptions {
  algorithm: Algorithm;
  /** The first group that matches a segment takes it; the others go to `algorithm`. */
  groups?: readonly { match: (segment: Segment) => boolean; algorithm: Algorithm }[];
  /** Largest Euclidean norm of the gradient: of the mean for algorithms that average it, of a rank's own otherwise. */
  clip?: number;
  /** Compare the parameters' fingerprints across ranks after every so many steps; 0 never. Default 100. */
  compareEvery?: number;
}

/** What one step cost and saw, on this rank. */
export interface StepReport {
  readonly gradientNorm: number; // before clipping
  readonly bytes: number; // sent: payload and headers
  readonly messages: number;
  readonly waitedSeconds: number; // with messages under way and nothing else to do
}

/** A part of the arena that one call of an algorithm's step sees. */
interface Span {
  readonly algorithm: Algorithm;
  readonly segments: readonly Segment[];
  readonly offset: number;
  readonly length: number;
  readonly θ: Tensor;
  readonly g: Tensor;
  readonly state: State;
}

export class Optimizer {
  /** Steps taken. */
  steps = 0;

  readonly #arena: Arena;
  readonly #group: Group;
  readonly #clip: number;
  readonly #compareEvery: number;
  readonly #spans: readonly Span[];
  readonly #pads: readonly Tensor[];

  constructor(arena: Arena, group: Group, { algorithm, groups = [], clip = 0, compareEvery = 100 }: OptimizerOptions) {
    this.#arena = arena;
    this.#group = group;
    this.#clip = clip;
    this.#compareEvery = compareEvery;
    const of = (segment: Segment) => groups.find(({ match }) => match(segment))?.algorithm ?? algorithm;
    this.#spans = spansOf(arena, of);
    this.#pads = padsOf(arena);
  }

  /**
   * All ranks take the step, or none does. `loss` is this rank's, if it wants the others to stop when it is not finite.
   * Throws StepRefusedError on every rank when a loss or a gradient is not finite, or a gradient so large that its square is
   * not: no parameter has changed then, but momenta may have, so a run goes on from its last save.
   */
  async step({ lr, loss = 0 }: { lr: number; loss?: number }): Promise<StepReport> {
    useThreads(numThreads());
    const before = this.#group.sent();
    const own = this.#gradientsOf("own");
    // Means show on all ranks whether they are finite; a rank has to look at its own share only where votes leave with them.
    const looked = own.length > 0 ? [...own, ...this.#gradientsOf("mean")] : [];
    const ownNorm = norm(own);
    let meanNorm = 0;
    const exchange = openExchange(this.#group, {
      region: this.#arena.gradients,
      accepts: (means) => {
        meanNorm = norm(means);
        return usable(meanNorm);
      },
    });

    const refusal = refusalOf(loss, looked.length > own.length ? norm(looked) : ownNorm);
    if (refusal) {
      exchange.refuse(refusal);
      this.#poison();
    }

    const seen: OptimizerExchange = Object.assign(Object.create(exchange) as StepExchange, {
      meanGradient: async (g: Tensor) => {
        await exchange.mean(g);
        // The gradients of all spans were asked for in one turn, so their norm is the gradient's.
        return clipFactor(meanNorm, this.#clip);
      },
    });
    const gradientScale = refusal ? 1 : clipFactor(ownNorm, this.#clip);
    const context = { step: this.steps, lr, gradientScale };
    await Promise.all(this.#spans.map(({ algorithm, θ, g, state }) => algorithm.step(θ, g, state, seen, context)));

    // Pad lanes go along with their neighbours through every kernel; the arena promises that they stay 0.
    for (const pad of this.#pads) noGrad(() => pad.zero_());

    this.steps++;
    const after = this.#group.sent();
    if (this.#compareEvery > 0 && this.steps % this.#compareEvery === 0) await this.compare();
    return {
      gradientNorm: Math.hypot(ownNorm, meanNorm),
      bytes: after.bytes + after.headerBytes - before.bytes - before.headerBytes,
      messages: after.messages - before.messages,
      waitedSeconds: exchange.waitedSeconds,
    };
  }

  #gradientsOf(whose: Algorithm["gradient"]): Tensor[] {
    return this.#spans.filter(({ algorithm }) => algorithm.gradient === whose).map(({ g }) => g);
  }

  /**
   * The others wait for this rank's messages, so it still sends them: votes about nothing, with its refusal in their
   * headers, and means that are not finite for anybody.
   */
  #poison(): void {
    for (const { algorithm, g } of this.#spans)
      noGrad(() => (algorithm.gradient === "own" ? g.zero_() : g.fill_(Number.NaN)));
  }

  /** Throws on every rank, naming the ranks that differ, unless all hold the same parameters bit for bit. */
  async compare(): Promise<void> {
    await compareRanks(this.#group, this.#arena.parameters, this.steps);
  }

  /** Payload bytes that this rank sends in a step, as closed form: votes leave as one message, neighbouring means too. */
  get bytesSent(): number {
    const { size, rank } = this.#group;
    const votes = new Map<Algorithm["bytesSent"], number>();
    let bytes = 0;
    let run = 0; // elements of neighbouring means so far
    for (const [i, { algorithm, length }] of this.#spans.entries()) {
      const { bytesSent, gradient } = algorithm;
      if (gradient === "own") votes.set(bytesSent, (votes.get(bytesSent) ?? 0) + 64 * Math.ceil(length / 64));
      else run += length;
      if (run === 0 || this.#spans[i + 1]?.algorithm.gradient === "mean") continue;
      bytes += meanBytes(run, size, rank);
      run = 0;
    }
    for (const [closedForm, n] of votes) bytes += closedForm(n, size, rank);
    return bytes;
  }

  /** What 32-bit data parallel would send instead. */
  get denseBytes(): number {
    return meanBytes(this.#arena.parameters.length, this.#group.size, this.#group.rank);
  }

  /** Every tensor of the state as views by name, `<state>.<parameter>`, for the checkpoint of this rank. */
  state(): Map<string, Tensor> {
    const views = new Map<string, Tensor>();
    for (const { segments, offset, state, algorithm } of this.#spans)
      for (const [key, tensor] of Object.entries(state))
        for (const segment of segments)
          views.set(
            `${key}.${segment.name}`,
            algorithm.splits === "at segments" ? tensor : tensor.narrow(0, segment.offset - offset, segment.length),
          );
    return views;
  }
}

function refusalOf(loss: number, norm: number): RefusalReason | undefined {
  if (!Number.isFinite(loss)) return "the loss is not finite";
  return usable(norm) ? undefined : "the gradient is not finite";
}

/** Runs of neighbouring segments that go to the same algorithm; single segments where it may not be cut elsewhere. */
function spansOf(arena: Arena, algorithmOf: (segment: Segment) => Algorithm): Span[] {
  const { segments, parameters, gradients } = arena;
  const runs: { algorithm: Algorithm; segments: Segment[] }[] = [];
  for (const segment of segments) {
    const algorithm = algorithmOf(segment);
    const last = runs.at(-1);
    if (last && last.algorithm === algorithm && algorithm.splits !== "at segments") last.segments.push(segment);
    else runs.push({ algorithm, segments: [segment] });
  }
  return runs.map(({ algorithm, segments: mine }) => {
    const { offset } = mine[0]!;
    const whole = algorithm.splits === "at segments";
    if (algorithm.splits === "nowhere" && mine.length !== segments.length)
      throw new Error(
        `${algorithm.name} needs the whole model as one vector: it cannot share it with parameter groups`,
      );
    // A run reaches to where the next one starts: the pad lanes between are zeros and belong to somebody.
    const next = segments[segments.indexOf(mine.at(-1)!) + 1];
    const length = whole ? mine[0]!.length : (next?.offset ?? parameters.length) - offset;
    const view = (flat: Tensor) => keep(flat.narrow(0, offset, length).view(whole ? mine[0]!.shape : [length]));
    const θ = view(parameters);
    return { algorithm, segments: mine, offset, length, θ, g: view(gradients), state: kept(algorithm.init(θ)) };
  });
}

/** Outlives the scope in which the optimizer was made. */
function kept(state: State): State {
  for (const tensor of Object.values(state)) keep(tensor);
  return state;
}

/** The lanes of the parameters between one segment's end and the next one's start. */
function padsOf({ segments, parameters }: Arena): Tensor[] {
  const ends = [...segments.slice(1).map(({ offset }) => offset), parameters.length];
  return segments.flatMap(({ offset, length }, i) => {
    const from = offset + length;
    return from < ends[i]! ? [keep(parameters.narrow(0, from, ends[i]! - from))] : [];
  });
}
