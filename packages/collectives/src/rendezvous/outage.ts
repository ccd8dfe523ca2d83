import { show } from "@terse/options";

/**
 * How long a link may be down without ending a run, and what follows from it. Where no reply comes for two round trips,
 * the next heartbeats use a new connection (native/collectives/heartbeat/). The connections between ranks follow the
 * same number (engines/outage.h).
 */
export const defaultOutageSeconds = 8;

/** The variable that says it to the process that runs the rendezvous. */
export const outageVariable = "TERSE_OUTAGE";
/** The shortest outage that may be set. */
export const leastOutageSeconds = 0.1;
/** The longest outage that may be set. */
export const mostOutageSeconds = 3600;

export interface Silence {
  /** A rank whose heartbeat is not heard for so long is lost. */
  readonly seconds: number;
  /** Between two heartbeats. */
  readonly heartbeatMs: number;
}

/**
 * After the outage a heartbeat comes at the latest two intervals, a second (until the kernel asks again for the address
 * of a neighbour) and two round trips later. A round trip of a third of a second fits after an outage; without one, a
 * second does.
 */
export function silenceAfter(outageSeconds: number): Silence {
  const margin = Math.min(0.75 * outageSeconds, 2);
  return { seconds: Math.round(10 * (outageSeconds + margin)) / 10, heartbeatMs: (1000 * margin) / 6 };
}

/** Throws RangeError for an outage that is too short or too long to be set. */
export function checkOutage(seconds: number): void {
  if (!(typeof seconds === "number" && seconds >= leastOutageSeconds && seconds <= mostOutageSeconds))
    throw new RangeError(
      `outageSeconds must be from ${leastOutageSeconds} to ${mostOutageSeconds} seconds, and is ${show(seconds)}`,
    );
}
