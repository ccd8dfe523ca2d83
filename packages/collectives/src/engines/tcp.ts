import type { Engine } from "./engine.ts";
import { SocketWorld } from "./socket-world.ts";

/** The project's own transport over TCP. */
export const tcp: Engine = {
  summary: "CPU memory over TCP",
  mayBeDefault: true,
  emulatesLinks: true,
  opensAlone: false,
  missing: () => undefined,
  world: async (options) => new SocketWorld("tcp", options, await options.address()),
};
