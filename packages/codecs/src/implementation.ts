import { NativeMissingError, wantedImplementation, warnOnce } from "@terse/native-codecs";

interface Kernel {
  readonly name: string;
  readonly implementation: string;
}

/**
 * The implementations of one definition that run on this machine, best first; the definition itself is always the last.
 */
export interface Implementations<K extends Kernel> {
  readonly kernels: readonly K[];
  /** Why no native implementation was loaded. */
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
 * The best implementation, or the one that TERSE_IMPLEMENTATION names. A codec without an implementation of that name
 * uses its next plainer one. Throws an Error with a list if this machine cannot run the name. `levels`: the instruction
 * levels of this machine.
 */
export function choose<K extends Kernel>(
  { kernels, missing }: Implementations<K>,
  levels: () => readonly string[],
  wanted = wantedImplementation(),
): K {
  if (!wanted) {
    if (missing)
      warnOnce(
        `the codecs run in TypeScript, which gives the same bytes but is about 100 times slower: ${missing} TERSE_IMPLEMENTATION=typescript silences this warning.`,
      );
    return kernels[0]!;
  }
  const plainer = [...(missing ? [] : levels()), "typescript"];
  const most = plainer.indexOf(wanted);
  const kernel = most < 0 ? undefined : kernels.find((k) => plainer.indexOf(k.implementation) >= most);
  if (kernel) return kernel;
  throw new Error(
    `TERSE_IMPLEMENTATION=${wanted}: this machine has no such implementation; it has ${plainer.join(", ")}${missing ? ` (${missing})` : ""}.`,
  );
}
