/** The registry of engines. A new engine is a file here and a line below; everything else takes the list from here. */
import type { Engine } from "./engine.ts";
import { gloo } from "./gloo.ts";
import { mpi } from "./mpi.ts";
import { nccl } from "./nccl.ts";
import { tcp } from "./tcp.ts";

export const engines = { tcp, gloo, mpi, nccl } satisfies Record<string, Engine>;

/** The name of an engine between processes: "tcp", "gloo", "mpi" or "nccl". */
export type EngineName = keyof typeof engines;

/** The names of all engines between processes. */
export const engineNames = Object.keys(engines) as EngineName[];

/** The engine of joinWorld where none is named. */
export const defaultEngine: EngineName = "tcp";

/** Returns the name if an engine has it. Throws TypeError otherwise. */
export function checkEngine(name: string): EngineName {
  if (Object.hasOwn(engines, name)) return name as EngineName;
  throw new TypeError(`no engine is called ${name}; there are ${listed(engineNames)}`);
}

/** Throws TypeError where this engine cannot slow its connections down. */
export function checkEmulatesLinks(name: EngineName): void {
  if (engines[name].emulatesLinks) return;
  const able = engineNames.filter((each) => engines[each].emulatesLinks);
  throw new TypeError(`the engine ${name} cannot emulate a link: its library sends the bytes; ${listed(able)} can`);
}

const listed = (names: readonly string[]) => `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
