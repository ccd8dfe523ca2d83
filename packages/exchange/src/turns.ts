/**
 * Who may call collectives on a group. Exchanges that are under way together each call several, when something of theirs has
 * arrived, and that happens on every rank at another time; yet all ranks must call in the same order. So an exchange calls when the
 * one before has called its last. On a second group, over which outcomes go, it calls when the one before is over.
 */
import type { Group } from "@terse/collectives";

export interface Turn {
  /** Whether it begins at once. */
  readonly free: boolean;
  readonly begins: Promise<void>;
  /** Resolves when all exchanges that took a turn before this one are over. */
  readonly othersOver: Promise<void>;
  /** Nothing more will be asked of the group itself. */
  end(): void;
  /** Nothing more will be asked at all; ends the turn, too. */
  over(): void;
}

/** The turn after the one taken last; ranks take them in the same order. Its promises never reject. */
export function takeTurn(group: Group): Turn {
  const before = last.get(group);
  const [ended, over] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const begins = before?.ended ?? Promise.resolve();
  const othersOver = before?.allOver ?? Promise.resolve();
  const turn = { hasEnded: false, ended: ended.promise, allOver: othersOver.then(() => over.promise) };
  last.set(group, turn);
  const end = () => {
    turn.hasEnded = true;
    ended.resolve();
  };
  return {
    free: before?.hasEnded ?? true,
    begins,
    othersOver,
    end,
    over() {
      end();
      over.resolve();
    },
  };
}

const last = new WeakMap<Group, { hasEnded: boolean; ended: Promise<void>; allOver: Promise<void> }>();

const collectives = new Set<string | symbol>([
  ...["allReduce", "reduceScatter", "allGather", "allToAll", "broadcast", "gather", "scatter", "barrier"],
]);

/** The group, whose collectives are called no sooner than `begins`; those called in one turn keep their order. */
export function inTurn(group: Group, begins: Promise<void>): Group {
  return new Proxy(group, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      if (!collectives.has(name)) return value.bind(target);
      return async (...given: unknown[]) => {
        await begins;
        return value.apply(target, given);
      };
    },
  });
}
