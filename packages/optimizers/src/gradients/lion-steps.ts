/**
 * The steps of Lion as whole numbers, for the rounds of local steps. Without weight decay each step of Lion moves an
 * element by η, so what H of them have taken away is k η. Chen et al. 2023, "Symbolic Discovery of Optimization
 * Algorithms", Algorithm 2, https://arxiv.org/abs/2302.06675
 *
 *   k ← round(g / η)                 −H … H; what rounding takes away is the rounding of Lion's own steps
 *   g ← (η / P) Σ_ranks k            Σ is exact, in any order of the ranks; its product is rounded once
 *
 * Nothing is lost, and so nothing is carried on: it is the mean in f32 but for f32's own rounding, in a quarter to a
 * fifth of its bytes. It does not send the fewest bits. Where a run goes on in the middle of a round with other ranks,
 * each begins at the mean of what they had, and round then takes away up to half a step of an element, once.
 *
 * Shapes: g, k (n)
 * Sent per step: 1 message, ⌈log₂(2 H + 1)⌉ bits an element up, and up to 8, or 16, that hold P H down, at
 * most 2048: `sumOfLevels`.
 */
import { type Codec, l1 } from "@terse/codecs";
import { largestSumOfLevels } from "@terse/exchange";
import { type Conflict, type Problem, positiveFloat, positiveInteger, v } from "@terse/options";
import { define, type RunOfRounds } from "../define.ts";
import type { CompressionRules } from "./gradient-compression.ts";

const mostSteps = 127; // levels of 8 bits, the most that `l1` writes

const options = v.object({
  unit: v.optional(positiveFloat), // η of Lion, the same in all steps
  steps: v.optional(v.pipe(positiveInteger, v.maxValue(mostSteps))), // H, the most between two rounds
});

type Options = v.InferOutput<typeof options>;

/** A recipe takes them from its other sections: `inRounds`. */
const needed = (option: keyof Options, remedy: string): Conflict<Options> => ({
  option,
  when: (given) => given[option] === undefined,
  because: () => "lion-steps needs it",
  remedy,
});

/** Where the steps between two rounds are no whole numbers of one learning rate. */
function problemsIn({ unit, steps }: Options, run: RunOfRounds): Problem[] {
  const { local, schedule, optimizer } = run;
  const key = "exchange.gradient";
  if (!local)
    return [
      {
        path: `${key}.name`,
        problem: "lion-steps sends what local steps of Lion have moved, and there are none",
        remedy: "take local.syncEvery, or another compression",
      },
    ];
  const { name, lr, weightDecay = 0, groups } = optimizer;
  const { syncEvery, alpha, rebase } = local;
  const most = mostStepsIn(run)!;
  const others = most > syncEvery ? `, and from the round before the save to the next one there are ${most}` : "";
  const whole = "with lion-steps each step moves an element by its learning rate";
  const ofRound = Number((1 - (1 - lr * weightDecay) ** syncEvery).toPrecision(3));
  const warmup = schedule.warmup > 0 ? " with a warm-up" : "";
  const problems: (Problem | false)[] = [
    name !== "lion" && { path: "optimizer.name", problem: `${whole}, and ${name} does not`, remedy: "take lion" },
    groups.length > 0 && { path: "optimizer.groups", problem: `${whole}, the same for all`, remedy: "set it to []" },
    weightDecay > 0 && {
      path: "optimizer.weightDecay",
      problem: `${whole}, and decay moves it further`,
      remedy: `set it to 0, and let a round decay as much: local.optimizer.weightDecay=${ofRound}`,
    },
    (schedule.name !== "constant" || schedule.warmup > 0) && {
      path: "schedule",
      problem: `${schedule.name}${warmup}, and with lion-steps all steps have one learning rate`,
      remedy: "take --schedule.name=constant --schedule.warmup=0",
    },
    unit !== lr && {
      path: `${key}.unit`,
      problem: `${unit}, and optimizer.lr is ${lr}`,
      remedy: `set it to ${lr}, or leave it out`,
    },
    most > mostSteps
      ? {
          path: "local.syncEvery",
          problem: `lion-steps has whole numbers for up to ${mostSteps} steps, got ${syncEvery}${others}`,
          remedy: "take fewer",
        }
      : steps! < most && {
          path: `${key}.steps`,
          problem: `${steps}, and local.syncEvery is ${syncEvery}${others}`,
          remedy: `set it to ${most}, or leave it out`,
        },
    alpha > 0 && {
      path: "local.alpha",
      problem: `${alpha}, and with lion-steps a rank goes on from what all have`,
      remedy: "set it to 0",
    },
    rebase && {
      path: "local.rebase",
      problem: "true, and with lion-steps a rank goes on from what all have",
      remedy: "set it to false",
    },
  ];
  return problems.filter((problem) => problem !== false);
}

/** H, or more where a run goes on in the middle of a round with another H. */
const mostStepsIn = ({ local, toNext = 0 }: RunOfRounds): number | undefined =>
  local ? Math.max(local.syncEvery, toNext) : undefined;

/** What local steps of Lion have moved, as whole numbers of learning rates. Chen et al. 2023, Algorithm 2. */
export const lionSteps = define({
  name: "lion-steps",
  options,
  conflicts: [needed("unit", "give Lion's learning rate"), needed("steps", "give the steps between two rounds")],

  kept: ({ sinceRound = 0 }) =>
    sinceRound > 0
      ? { unit: "between two rounds it stays, and optimizer.lr with it: the ranks have moved by whole numbers of it" }
      : {},

  inRounds(given, run) {
    const options = { unit: run.optimizer.lr, steps: mostStepsIn(run), ...given };
    return { options, problems: problemsIn(options, run) };
  },

  amongRanks({ steps }, ranks) {
    const most = ranks * steps!;
    if (most <= largestSumOfLevels) return undefined;
    return {
      path: "local.syncEvery",
      problem: `${ranks} ranks of up to ${steps} steps sum up to ±${most}, and lion-steps has whole numbers up to ${largestSumOfLevels}`,
      remedy: `take at most ${Math.floor(largestSumOfLevels / ranks)}`,
    };
  },

  create(given): CompressionRules {
    const { unit, steps } = given as Required<Options>;
    const codec = l1({ bits: Math.ceil(Math.log2(2 * steps + 1)), side: steps, unscaled: true }) as Codec;
    return {
      splits: "anywhere",

      init: () => ({}),

      async mean(g, _, exchange) {
        await exchange.sumOfLevels(g, { codec, unit, scale: unit / exchange.ranks });
      },

      messages: ({ n }) => [{ kind: "sumOfLevels", n, codec }],
    };
  },
});
