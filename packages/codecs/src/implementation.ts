import { NativeMissingError, wantedImplementation, warnOnce } from "@terse/native-codecs";

interface Kernel {
  readonly name: string;
  readonly implementation: string;
}

/** Everything that can run here for one definition, best first; the definition itself comes last and is always there. */
export interface Implementations<K extends Kernel> {
  readonly kernels: readonly K[];
  /** Why there are no native ones. */
  readonly missing?: string;
}

export function implementations<K extends Kernel>(definition: K, native: () => readonly K[]): Implementations<K> {
  try {
    return { kernels: [...native().filter(({ name }) => name === definition.name), definition] };
  } catch (error) {
    if (!(error instanceof NativeMissingError)) throw error;
    return { kernels: [definition], missing: error.message };
  }
}

/**
 * The best one, or the one that TERSE_IMPLEMENTATION names; where a codec has none of that name, its next plainer one.
 * A name that this machine cannot run is an error that lists what it can. `levels`: the instruction levels of this machine.
 */
export function choose<K extends Kernel>(
  { kernels, missing }: Implementations<K>,
  levels: () => readonly string[],
  wanted = wantedImplementation(),
): K {
  if (!wanted) {
    if (missing)
      warnOnce(
        `the codecs run in TypeScript, some hundred times slower and with the same bytes: ${missing} TERSE_IMPLEMENTATION=typescript says that this is meant.`,
      );
    return kernels[0]!;
  }
  const plainer = [...(missing ? [] : levels()), "typescript"];
  const most = plainer.indexOf(wanted);
  const kernel = most < 0 ? undefined : kernels.find((k) => plainer.indexOf(k.implementation) >= most);
  if (kernel) return kernel;
  throw new Error(
    `TERSE_IMPLEMENTATION=${wanted}: this machine has no such implementation; there is ${plainer.join(", ")}${missing ? ` (${missing})` : ""}.`,
  );
}
