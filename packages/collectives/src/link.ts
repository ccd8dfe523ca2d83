/** Emulated links: a rate and a latency. */
import { collectives, type NativeLink } from "@terse/native-collectives";

/**
 * A rank's full-duplex link to all other ranks. Its messages, headers included, leave at this rate one after the other
 * and arrive `latency` later. Messages from all other ranks arrive at this rate. A message of a single packet does not
 * wait for those of other groups or to other ranks, as in a network whose queues are fair. The heartbeat and the
 * rendezvous are not slowed down.
 */
export interface Link {
  readonly bitsPerSecond: number;
  /** Seconds, one way. */
  readonly latency: number;
}

const rates: Record<string, number> = { bit: 1, kbit: 1e3, mbit: 1e6, gbit: 1e9 };
const times: Record<string, number> = { us: 1e-6, ms: 1e-3, s: 1 };

/**
 * Parses `100mbit`, `2.5gbit,50us`, `20mbit,1ms`: a rate (bit, kbit, mbit or gbit per second, powers of ten), then us,
 * ms or s.
 */
export function parseLink(text: string): Link {
  const match = /^(\d+(?:\.\d+)?)([kmg]?bit)(?:,(\d+(?:\.\d+)?)(us|ms|s))?$/.exec(text.trim().toLowerCase());
  if (!match)
    throw new RangeError(
      `a link is written like 100mbit or 100mbit,1ms (bit, kbit, mbit, gbit per second; us, ms, s), and this is "${text}"`,
    );
  const [, rate, unit, delay = "0", time = "s"] = match;
  return checkLink({ bitsPerSecond: Number(rate) * rates[unit!]!, latency: Number(delay) * times[time]! });
}

/** The link of an option, checked. */
export function linkOf(link: Link | string): Link {
  return typeof link === "string" ? parseLink(link) : checkLink(link);
}

/** The link as `parseLink` reads it: `100mbit,1ms`. */
export function linkText({ bitsPerSecond, latency }: Link): string {
  const [unit, rate] = Object.entries(rates).findLast(([, each]) => bitsPerSecond >= each)!;
  const [time, span] = Object.entries(times).findLast(([, each]) => latency >= each) ?? ["us", 1e-6];
  const short = (value: number) => String(Number(value.toPrecision(12))); // 0.0003 s are 300 us, not 299.99999999999994
  return `${short(bitsPerSecond / rate)}${unit}${latency > 0 ? `,${short(latency / span)}${time}` : ""}`;
}

export function openLink({ bitsPerSecond, latency }: Link): NativeLink {
  return collectives().link(bitsPerSecond, latency);
}

function checkLink(link: Link): Link {
  const { bitsPerSecond, latency } = link;
  if (!(bitsPerSecond >= 1 && bitsPerSecond <= 1e15))
    throw new RangeError(`the rate of a link must be 1 bit to 1000000 gbit per second, and is ${bitsPerSecond} bit`);
  if (!(latency >= 0 && latency <= 3600))
    throw new RangeError(`the latency of a link must be 0 to 3600 seconds, and is ${latency}`);
  return link;
}
