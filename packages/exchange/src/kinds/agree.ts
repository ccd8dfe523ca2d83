import type { OwnerScheme } from "../by-owners/by-owners.ts";
import { type Kind, nothing } from "./kind.ts";
import { viaOwners } from "./via-owners.ts";

/** Sends only this rank's refusal, if it has one: a vector without elements, whose messages are bare headers. */
export const agree: Kind<undefined, object, OwnerScheme, void, never> = {
  ...viaOwners,
  memory: "own",
  name: "agree",
  ask(_, __, { group }) {
    const sizes = new Array<number>(group.size).fill(0);
    return { up: sizes, down: sizes, encode: nothing, reduce: nothing, handOut: nothing };
  },
  result: nothing,
  cost: () => [],
};
