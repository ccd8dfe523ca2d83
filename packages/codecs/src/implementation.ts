import { NativeMissingError } from "@terse/native-codecs";

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

/** The best one, or the one that TERSE_IMPLEMENTATION names. A name that is not there is an error that lists what is. */
export function choose<K extends Kernel>(
  { kernels, missing }: Implementations<K>,
  wanted = process.env["TERSE_IMPLEMENTATION"],
): K {
  const kernel = wanted ? kernels.find(({ implementation }) => implementation === wanted) : kernels[0];
  if (kernel) return kernel;
  const names = kernels.map(({ implementation }) => implementation).join(", ");
  throw new Error(
    `TERSE_IMPLEMENTATION=${wanted}: ${kernels[0]!.name} has no such implementation on this machine; there is ${names}${missing ? ` (${missing})` : ""}.`,
  );
}
