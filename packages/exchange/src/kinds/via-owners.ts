/** What kinds share that go up to owners and down again as one message: a vector each, in schemes of its own. */
import { byOwners, type OwnerScheme } from "../by-owners/by-owners.ts";
import type { ExchangeContext } from "../exchange-context.ts";

export const viaOwners = {
  memory: "host",
  key: () => "owners",
  carry: (schemes: readonly OwnerScheme[], context: ExchangeContext): Promise<void> => byOwners(schemes, context),
} as const;
