/** One rank of `bench cost-model` in a process of its own. */
import { joinWorld } from "@terse/collectives";
import { measureLink } from "@terse/exchange";
import { serve } from "../hosts/serve.ts";
import { exchanges, pause } from "./exchanges.ts";

const group = await joinWorld();

await serve({
  measure: () => measureLink(group),

  /** Seconds of each exchange. */
  async run({ name, n, times }: { name: string; n: number; times: number }): Promise<number[]> {
    const exchange = exchanges.find((each) => each.name === name)!;
    const run = exchange.prepare(group, n);
    const runs: number[] = [];
    for (let k = 0; k < times; k++) {
      await pause();
      await group.barrier();
      const begin = performance.now();
      await run();
      runs.push((performance.now() - begin) / 1000);
    }
    await exchange.close?.(group);
    return runs;
  },

  close: () => group.close(),
});
