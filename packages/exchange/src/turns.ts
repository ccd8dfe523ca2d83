/**
 * Who may call collectives on a group. Exchanges that are under way together each call several, when something of theirs has
 * arrived, and that happens on every rank at another time; yet all ranks must call in the same order. So an exchange calls when the
 * one before has called its last.
 */
import type { Group } from "@terse/collectives";

export interface Turn {
  /** Whether it begins at once. */
  readonly free: boolean;
  readonly begins: Promise<void>;
  end(): void;
}

/** The turn after the one taken last; ranks take them in the same order. Never rejects. */
export function takeTurn(group: Group): Turn {
  const before = last.get(group);
  const { promise, resolve } = Promise.withResolvers<void>();
  const turn = {
    free: before?.ended ?? true,
    begins: before?.done ?? Promise.resolve(),
    ended: false,
    done: promise,
    end() {
      turn.ended = true;
      resolve();
    },
  };
  last.set(group, turn);
  return turn;
}

const last = new WeakMap<Group, { ended: boolean; done: Promise<void> }>();
