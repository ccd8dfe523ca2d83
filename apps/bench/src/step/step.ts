/** The cost of one training step on this machine; each part is compared with a peer in the same run. */
import type { Measurement } from "../measurement.ts";
import { localWork } from "./local-work.ts";
import { operatorOverhead, throughput } from "./pytorch.ts";

export async function* step(): AsyncGenerator<Measurement> {
  const { local_over_lion, details } = await localWork();
  for (const [name, milliseconds] of Object.entries(details))
    yield { case: "local work, 64 Mi parameters", metric: name, value: milliseconds, unit: "ms" };
  yield { case: "local work, 64 Mi parameters", metric: "local_over_lion", value: local_over_lion, unit: "ratio" };
  yield* operatorOverhead();
  yield* throughput();
}
