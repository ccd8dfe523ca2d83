/** The contract of every engine. A new engine's test calls it with a function that makes worlds. */
import { describe, expect, it } from "vitest";
import type { Group } from "../../group.ts";
import { wrongArguments } from "./arguments.ts";
import { cancelling } from "./cancelling.ts";
import { closingAndAborting, closingTooEarly } from "./closing-and-aborting.ts";
import { dataMovement } from "./data-movement.ts";
import { memoryUnderWay } from "./memory.ts";
import { mismatches } from "./mismatches.ts";
import { order } from "./order.ts";
import { reductions } from "./reductions.ts";
import { splitGroups } from "./split-groups.ts";
import { EngineUnderTest, SharedWorld, skippedUnless, type Traits } from "./world.ts";

export function engineContract(name: string, makeWorld: (size: number) => Promise<Group[]>, traits: Traits = {}): void {
  const engine = new EngineUnderTest(name, makeWorld, traits);
  const { sizes } = engine;

  describe.each(sizes ?? [1, 2, 3, 4, 5, 6, 7, 8, 9])(`${name}, a group of %i ranks`, (n) => {
    const world = new SharedWorld(engine, n);

    it("knows every rank's number and the size", () => {
      expect(world.groups.map(({ rank, size }) => [rank, size])).toEqual(world.groups.map((_, rank) => [rank, n]));
    });

    reductions(world);
    dataMovement(world);
    order(world);
    wrongArguments(world);
    splitGroups(world);
    closingAndAborting(engine, n);
  });

  describe.each(sizes ?? [2, 3])(`${name}, a signal in a group of %i ranks`, (n) => cancelling(engine, n));

  const { sharesMemory } = engine.traits;
  const copied = skippedUnless(sharesMemory, "the ranks are other processes, and use copies");
  describe.skipIf(!sharesMemory).each(sizes ?? [2, 3])(`${name}, memory in a group of %i ranks${copied}`, (n) =>
    memoryUnderWay(engine, n),
  );

  describe.skipIf(!engine.traits.headers).each(sizes ?? [2, 3, 5])(
    `${name}, %i ranks that do not agree${engine.headersOnly}`,
    (n) => {
      mismatches(engine, n);
      closingTooEarly(engine, n);
    },
  );
}
