import type { Engine } from "./engine.ts";
import { SocketWorld } from "./socket-world.ts";

/** CPU memory over the project's own TCP transport. */
export const tcp: Engine = {
  emulatesLinks: true,
  opensAlone: false,
  missing: () => undefined,
  world: async (options) => new SocketWorld("tcp", options, await options.address()),
};
