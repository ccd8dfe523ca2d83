/** One rank of `bench cost-model` in a process of its own. */
import { joinWorld } from "@terse/collectives";
import { measureLink } from "@terse/exchange";
import { serve } from "../hosts/serve.ts";
import { exchanges, quiet } from "./exchanges.ts";

/** From when this rank called it until it had the result: seconds of a clock that all processes of a machine share. */
export type Run = readonly [begin: number, end: number];

const group = await joinWorld();
const now = () => Number(process.hrtime.bigint()) / 1e9;

await serve({
  measure: () => measureLink(group),

  async run({ name, n, times }: { name: string; n: number; times: number }): Promise<Run[]> {
    const exchange = exchanges.find((each) => each.name === name)!;
    const run = exchange.prepare(group, n);
    const runs: Run[] = [];
    for (let k = 0; k < times; k++) {
      await quiet();
      await group.barrier();
      const begin = now();
      await run();
      runs.push([begin, now()]);
    }
    await exchange.close?.(group);
    return runs;
  },

  close: () => group.close(),
});
