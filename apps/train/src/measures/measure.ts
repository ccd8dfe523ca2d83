/**
 * What is measured now and then of a step that has been taken, as a line of metrics.jsonl. Values of layers are lists
 * in the order of `layers/names`, with null for a layer that has no such value.
 */
import type { Group } from "@terse/collectives";
import type { TrainingOptimizer } from "@terse/optimizers";
import { scope } from "@terse/tensor";
import { measureMomenta, measureVotes } from "./agreement.ts";
import { measureLayers } from "./layers.ts";
import type { Measured } from "./measured.ts";
import { measureUpdate } from "./update.ts";
import type { VoteSample } from "./vote-sample.ts";

/** The line without its step on rank 0; undefined on the others, and where there is nothing to measure. */
export async function measure(
  group: Group,
  optimizer: TrainingOptimizer,
  { step, votes }: { step: number; votes: VoteSample | undefined },
): Promise<Readonly<Record<string, unknown>> | undefined> {
  const began = performance.now();
  return scope(async () => {
    const layers = optimizer.layers();
    const measured = [await measureMomenta(group, optimizer.momenta())];
    if (!optimizer.averagesMomenta(step)) measured.push(await measureUpdate(group, layers, step));
    measured.push(await measureVotes(optimizer.voters, votes)); // whose ranks may be fewer than those of the update
    if (group.rank === 0) measured.push(measureLayers(layers, step));
    if (group.rank !== 0 || measured.every(isEmpty)) return undefined;
    const bytes = measured.reduce((sum, { bytes = 0 }) => sum + bytes, 0);
    return {
      ...Object.assign({}, ...measured.map(({ model }) => model)),
      ...listsOf(
        measured,
        layers.map(({ segment }) => segment.name),
      ),
      ...(bytes > 0 && { measure_bytes: bytes }),
      measure_seconds: (performance.now() - began) / 1000,
    };
  });
}

/** Whether a step that is due to be measured waits for the next one, whose momenta are the ranks' own. */
export function isBetterMeasuredNext(optimizer: TrainingOptimizer, step: number): boolean {
  return optimizer.averagesMomenta(step) && !optimizer.averagesMomenta(step + 1);
}

const isEmpty = ({ model, layers = new Map() }: Measured) => Object.keys(model).length + layers.size === 0;

const digits = 6; // a line has some thousand numbers

/** `layers/names` and a list for each key that some layer has. */
function listsOf(
  measured: readonly Measured[],
  names: readonly string[],
): Readonly<Record<string, readonly unknown[]>> {
  const values = names.map((name) => Object.assign({}, ...measured.map(({ layers }) => layers?.get(name))));
  const keys = [...new Set(values.flatMap((each) => Object.keys(each)))];
  if (keys.length === 0) return {};
  const list = (key: string) => values.map((each) => (key in each ? Number(each[key].toPrecision(digits)) : null));
  return { "layers/names": names, ...Object.fromEntries(keys.map((key) => [`layers/${key}`, list(key)])) };
}
