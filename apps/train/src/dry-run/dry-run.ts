/** `./terse train --dry-run`: prints what a recipe would need, and trains nothing. */
import { linkText, parseLink } from "@terse/collectives";
import type { TrainArguments } from "../arguments.ts";
import { bytesText } from "../format.ts";
import { methodName } from "../parameter-groups.ts";
import { defaultRecipe, droppedOptions, remarksOn } from "../recipe.ts";
import { recipeFor } from "../recipe-for.ts";
import { type Plan, planOf, type Speed } from "./plan.ts";

/** Resolves to the exit code. */
export async function dryRun(args: TrainArguments): Promise<number> {
  const recipe = recipeFor(args);
  const link = args.link ?? args.emulateLink;
  const ranks = args.worldSize ?? args.nprocPerNode;
  const given = args.flops === undefined ? {} : { speed: { flops: args.flops, measured: false } };
  const plan = await planOf(recipe, ranks, { ...(link !== undefined && { link: parseLink(link) }), ...given });
  const dropped = args.resume === undefined ? droppedOptions(args.recipe ?? defaultRecipe, args.overrides) : [];
  const remarks = [...dropped, ...remarksOn(recipe), ...plan.remarks];
  const on = link === undefined ? "" : `, a link of ${linkText(parseLink(link))} each`;
  process.stdout.write(`${[...planText(plan, ranks, on), ...remarks].join("\n")}\n`);
  return 0;
}

export function planText(plan: Plan, ranks: number, on = ""): string[] {
  const { recipe, memory, phases, rows, tokens } = plan;
  const roles = [...plan.byRole].map(([role, count]) => `${role} ${millions(count)}`).join(", ");
  const width = Math.max("optimizer state".length, ...phases.map((phase) => stepsText(phase).length));
  const each = (label: string, text: string) => `  ${label.padEnd(width)}  ${text}`;
  return [
    `dry run: ${methodName(recipe)} on ${ranks} ${ranks === 1 ? "rank" : "ranks"}${on}`,
    `model ${recipe.model.name}, ${millions(plan.parameters)} parameters (${roles}); ${recipe.steps} steps of ${count(rows)} rows${tokens === undefined ? "" : `, ${count(tokens)} tokens`}`,
    "memory of each rank (rank 0's), without activations",
    each("parameters", bytesText(memory.parameters)),
    each("gradients", bytesText(memory.gradients)),
    each("optimizer state", bytesText(memory.state)),
    each("messages", memory.exchange === 0 ? "0 B" : `at most ${bytesText(memory.exchange)}`),
    ...(ranks === 1
      ? ["sent: nothing, one rank"]
      : [
          `sent by each rank (rank 0) in a step; 32-bit data parallel would send ${bytesText(plan.denseBytes)}`,
          ...phases.map((phase) => each(stepsText(phase), bytesText(Math.round(phase.bytes)))),
        ]),
    ...timeText(plan, each),
  ];
}

function timeText(
  { phases, speed, buckets, obstacle, tokens }: Plan,
  each: (label: string, text: string) => string,
): string[] {
  if (speed === undefined) return ["time: give --link, such as --link 1gbit,50us, and a step's time is predicted"];
  const leave =
    obstacle === undefined
      ? `messages leave in ${buckets} ${buckets === 1 ? "bucket" : "buckets"} while backward runs`
      : `messages leave after backward: ${obstacle}`;
  return [
    `time of a step, predicted: messages by the link's numbers; 6 operations for each weight and ${tokens === undefined ? "place" : "token"} at ${speedText(speed)}`,
    ...phases.map((phase) => {
      const { computing, messages, exposed } = phase.time!;
      const parts = `forward and backward ${seconds(computing)}; messages ${seconds(messages)}, of which ${seconds(exposed)} after backward`;
      return each(stepsText(phase), `${seconds(computing + exposed)}: ${parts}`);
    }),
    leave,
  ];
}

/** "steps 0 to 99", or "40 steps in 3 to 99" where others come between. */
function stepsText({ from, to, steps }: Plan["phases"][number]): string {
  if (steps < to - from + 1) return `${steps} steps in ${from} to ${to}`;
  return steps === 1 ? `step ${from}` : `steps ${from} to ${to}`;
}

const speedText = ({ flops, measured }: Speed) =>
  `${Number((flops / 1e9).toPrecision(3)).toLocaleString("en-US")} Gflop/s, ${measured ? "measured here" : "as given"}`;

const millions = (n: number) => `${(n / 1e6).toFixed(2)} M`;
const count = (n: number) => n.toLocaleString("en-US");

function seconds(value: number): string {
  if (value >= 1) return `${Number(value.toPrecision(3)).toLocaleString("en-US")} s`;
  return value >= 1e-3 || value === 0
    ? `${Number((1e3 * value).toPrecision(3))} ms`
    : `${Number((1e6 * value).toPrecision(3))} µs`;
}
