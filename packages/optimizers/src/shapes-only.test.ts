/** On libtorch's device "meta" tensors have shapes and no memory: so dry runs plan models of any size. */
import { loopback } from "@terse/collectives";
import { Arena, type Segment, withDevice } from "@terse/tensor";
import { expect, it } from "vitest";
import { adamw, compressed, Optimizer, sgd } from "./index.ts";
import { Chain } from "./testing/chain.ts";
import { algorithms, compressions, variants } from "./testing/methods.ts";

const withCompression = Object.fromEntries(
  Object.entries(compressions).map(
    ([name, create]) => [`sgd with ${name}`, () => compressed(sgd(), create())] as const,
  ),
);

it.each(Object.entries({ ...algorithms, ...variants, ...withCompression }))(
  "%s keeps its state on the device of its parameters, also where that has no memory",
  async (_, create) => {
    const [group] = loopback(2);
    const groups = [{ match: ({ shape }: Segment) => shape.length < 2, algorithm: adamw() }];
    const optimizer = withDevice(
      "meta",
      () => new Optimizer(new Arena(new Chain()), group!, { algorithm: create(), groups }),
    );
    const { tensors } = await optimizer.state();
    for (const [name, { device, length }] of tensors) expect(length === 0 || device === "meta", name).toBe(true);
  },
);
