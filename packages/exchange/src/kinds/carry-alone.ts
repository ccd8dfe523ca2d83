import type { Group } from "@terse/collectives";
import type { ChosenSchemes } from "../chosen-schemes.ts";
import { enterQueue } from "../collective-queue.ts";
import { ExchangeContext } from "../exchange-context.ts";
import type { RefusalReason } from "../refusal.ts";
import { retained } from "../retained.ts";
import { standardSchemes } from "../schemes.ts";
import type { Kind } from "./kind.ts";

export interface CallOptions {
  /** Why this rank will not take the step; all ranks then throw the same StepRefusedError. */
  readonly refusal?: RefusalReason | undefined;
  /** A second group of the same ranks, for results. */
  readonly down?: Group | undefined;
  readonly schemes?: Partial<ChosenSchemes> | undefined;
}

/**
 * Carries one request at once and by itself: `carryAlone(mean, group, x)`. An exchange joins requests, and keeps their
 * order.
 */
export function carryAlone<X, O extends object, P, R, M>(
  kind: Kind<X, O, P, R, M>,
  group: Group,
  vector: X,
  given: O = {} as O,
  { refusal, down = group, schemes }: CallOptions = {},
): Promise<R> {
  return retained(kind, vector, given, async (x, options) => {
    const resources = { group, schemes: { ...standardSchemes, ...schemes }, memory: undefined };
    const part = kind.ask(x, options, resources);
    const up = enterQueue(group);
    const places = { up, down: down === group ? up : enterQueue(down) };
    try {
      await kind.carry([part], new ExchangeContext(places, refusal), resources);
      return kind.result(part);
    } finally {
      places.up.leave();
      places.down.leave();
    }
  });
}
