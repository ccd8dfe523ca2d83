/** The ranks that measure exchanges: all in this process, or each in its own. */
import { type Measured, measureLink } from "@terse/exchange";
import { engines, type World as Groups } from "../collectives/collectives.ts";
import { Hosts } from "../hosts/hosts.ts";
import type { Exchange } from "./exchanges.ts";
import { pause, runsOf } from "./exchanges.ts";

export interface World extends AsyncDisposable {
  /** The measured cost of the link and the codecs. */
  measure(): Promise<Measured>;
  /** The seconds of several runs, from the call, just after a barrier, to the result on the slowest rank. */
  run(exchange: Exchange, n: number): Promise<number[]>;
}

/** All ranks on the one thread of this process. */
export async function inOneProcess(engine: string, ranks: number, link: string): Promise<World> {
  const { groups, ...world }: Groups = await engines[engine]!(ranks, link);
  return {
    measure: async () => (await Promise.all(groups.map(measureLink)))[0]!,
    async run(exchange, n) {
      const runs = groups.map((group) => exchange.prepare(group, n));
      const times: number[] = [];
      while (times.length < 2 || times.length < 1 + runsOf(times[1]!)) {
        await pause();
        await Promise.all(groups.map((group) => group.barrier()));
        const each = await Promise.all(
          runs.map(async (run) => {
            const begin = performance.now();
            await run();
            return (performance.now() - begin) / 1000;
          }),
        );
        times.push(Math.max(...each));
      }
      await Promise.all(groups.map((group) => exchange.close?.(group)));
      return times.slice(1);
    },
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };
}

/** Each rank on its own host, behind a link that the kernel limits or, if that is not possible, that we emulate. */
export async function onHosts(ranks: number, rate: string): Promise<World & { readonly emulated: boolean }> {
  const hosts = await Hosts.open({ hosts: ranks, rate, program: new URL("./host.ts", import.meta.url) });
  const times = async (name: string, n: number, times: number) => {
    const runs = await hosts.ask<number[]>({ do: "run", name, n, times });
    return runs[0]!.map((_, k) => Math.max(...runs.map((of) => of[k]!)));
  };
  return {
    emulated: hosts.links === "emulated",
    measure: async () => (await hosts.ask<Measured>({ do: "measure" }))[0]!,
    async run({ name }, n) {
      const [, once] = await times(name, n, 2);
      return (await times(name, n, 1 + runsOf(once!))).slice(1);
    },
    async [Symbol.asyncDispose]() {
      await hosts.ask({ do: "close" });
      await hosts[Symbol.asyncDispose]();
    },
  };
}
