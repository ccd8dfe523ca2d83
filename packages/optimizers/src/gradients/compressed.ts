/**
 * An algorithm whose gradients are compressed on the way to their mean:
 *
 *   g ← compression.mean(g)        in place of the dense mean
 *   g ← min(1, limit / ‖g‖) g      clipped as any mean gradient is; all ranks have the same g
 *   the algorithm's other lines
 *
 * The pair is an algorithm like any other: cut as the stricter of the two allows, and with the state of both.
 */
import { OptionsError } from "@terse/options";
import type { Algorithm } from "../algorithms/algorithm.ts";
import type { State } from "../algorithms/state.ts";
import type { GradientCompression } from "./gradient-compression.ts";

/**
 * The algorithm with its gradients compressed on the way to their mean. Throws OptionsError for an algorithm that has
 * steps without a mean gradient, or that works on single matrices where the compression works on the whole model.
 */
export function compressed(algorithm: Algorithm, compression: GradientCompression): Algorithm {
  const { where = compression.name } = compression;
  if (!algorithm.takesMean)
    throw new OptionsError([
      {
        path: where,
        problem: `${compression.name} compresses mean gradients, and ${algorithm.name} does not send one in every step`,
        remedy: `take an optimizer that does, such as sgd, adamw, lion, lamb or muon, or leave ${where} out`,
      },
    ]);
  if (algorithm.splits === "at segments" && compression.splits === "nowhere")
    throw new OptionsError([
      {
        path: where,
        problem: `${compression.name} works on the whole model at once here, and ${algorithm.name} on single matrices`,
        remedy: `take ${compression.perLayer ?? "another compression"}, or leave ${where} out`,
      },
    ]);
  const names = new Set<string>(); // of the compression's state, known once it has made one
  return {
    ...algorithm,
    name: `${algorithm.name} with ${compression.name}`,
    splits: stricter(algorithm.splits, compression.splits),
    ...(compression.splits === "nowhere" && { perLayer: compression.perLayer }),

    init(θ, vector) {
      const state = compression.init(θ, vector);
      for (const kind of Object.values(state)) for (const name of Object.keys(kind ?? {})) names.add(name);
      return bothStates(algorithm.init(θ, vector), state);
    },
    isOfCompression: (name) => names.has(name),

    async step(θ, g, state, exchange, context) {
      const meanGradient = async () => {
        await compression.mean(g, state, exchange, context);
        return exchange.clipFactor(g);
      };
      const meanGradientAtOwner = meanGradient; // all ranks have it
      await algorithm.step(θ, g, state, { ...exchange, meanGradient, meanGradientAtOwner }, context);
    },

    messages: (vector, step, state) =>
      algorithm
        .messages(vector, step, state)
        .flatMap((message) =>
          "n" in message
            ? [message]
            : compression.messages(vector, step).map((each) => ({ ...each, ofMean: true }) as const),
        ),
  };
}

const order = ["anywhere", "at segments", "nowhere"] as const;

const stricter = (a: Algorithm["splits"], b: Algorithm["splits"]): Algorithm["splits"] =>
  order[Math.max(order.indexOf(a), order.indexOf(b))]!;

/** The state of both. Each finds its own by name. */
function bothStates(a: State, b: State): State {
  const state: Record<string, object> = {};
  for (const kind of Object.keys({ ...a, ...b }) as (keyof State)[]) {
    const twice = Object.keys(a[kind] ?? {}).find((key) => Object.hasOwn(b[kind] ?? {}, key));
    if (twice)
      throw new Error(`${twice}: an algorithm and the compression of its gradients both keep ${kind} of this name`);
    state[kind] = { ...a[kind], ...b[kind] };
  }
  return state as State;
}
