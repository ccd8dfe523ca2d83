import { collectives } from "@terse/native-collectives";
import type { Engine } from "./engine.ts";
import { SocketWorld } from "./socket-world.ts";

/** CPU memory over Gloo's TCP transport. */
export const gloo: Engine = {
  emulatesLinks: true,
  opensAlone: false,
  missing: () =>
    collectives().hasGloo
      ? undefined
      : "this build has no Gloo: `./terse setup` installs it; the engine tcp works without",
  world: async (options) => new SocketWorld("gloo", options, await options.address()),
};
