import { readFileSync } from "node:fs";
import { OptionsError, parseArguments } from "@terse/options";
import { type Address, defaultAddress, parseAddress } from "./address.ts";

export const usage = readFileSync(new URL("help.txt", import.meta.url), "utf8");

export interface PageArguments {
  readonly runs: readonly string[]; // folders; empty: the newest
  readonly address: Address;
}

/** Reads the words of `./terse page`. Throws `OptionsError` with a line per problem. */
export function readArguments(argv: readonly string[]): PageArguments | "help" {
  const { help, flags, words } = parseArguments(argv, { command: "./terse page", flags: { address: parseAddress } });
  if (help) return "help";
  if (words.length > 20) throw new OptionsError([`a page compares 20 runs at most, got ${words.length}; name fewer`]);
  return { runs: words, address: flags.address ?? defaultAddress };
}
