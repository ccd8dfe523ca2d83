/** For kinds that go up to owners and down again as one message. Each vector is one scheme of this message. */
import { byOwners, type OwnerScheme } from "../by-owners/by-owners.ts";
import type { ExchangeContext } from "../exchange-context.ts";

export const viaOwners = {
  memory: "host",
  key: () => "owners",
  carry: (schemes: readonly OwnerScheme[], context: ExchangeContext): Promise<void> => byOwners(schemes, context),
} as const;
