/** The flags of commands that run on ranks: those of the launcher, and how the ranks meet and talk. */
import { engineNames, leastOutageSeconds, mostOutageSeconds, parseLink } from "@terse/collectives";
import { numberFrom, wordOf } from "@terse/options";
import { launcherFlags } from "./flags.ts";

export const worldFlags = {
  ...launcherFlags,
  engine: wordOf(engineNames), // carries the ranks' messages
  emulateLink: link, // "100mbit,1ms"
  deadline: numberFrom({ least: 1, most: 1e6 }), // seconds a rank may take to arrive
  outage: numberFrom({ least: leastOutageSeconds, most: mostOutageSeconds }), // seconds for which a link may be down
} as const;

/** Keeps the text, which goes on to every rank; throws where it is no link. */
export function link(text: string): string {
  parseLink(text);
  return text;
}
