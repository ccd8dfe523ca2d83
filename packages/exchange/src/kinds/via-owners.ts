/** What kinds share that go up to owners and down again as one message: a vector each, in schemes of its own. */
import type { Codec } from "@terse/codecs";
import { byOwners, type OwnerScheme } from "../by-owners/by-owners.ts";
import type { ExchangeContext } from "../exchange-context.ts";

export interface CodecMessage<Name extends string> {
  readonly kind: Name;
  readonly n: number;
  readonly codec: Codec;
}

export const viaOwners = {
  memory: "host",
  key: () => "owners",
  carry: (schemes: readonly OwnerScheme[], context: ExchangeContext): Promise<void> => byOwners(schemes, context),
} as const;
