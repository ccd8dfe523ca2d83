/**
 * Which parameter of a model a tensor in a file is. Files have the names of the library that wrote them, and some
 * libraries put a prefix before all names. One rule serves all models; each model gives a table:
 *
 *   transformer.h.0.ln_1.weight           as the model saves it, or as it calls the parameter
 *   h.0.ln_1.weight                       saved by the base model, whose prefix is "transformer."
 *   module._orig_mod.transformer.h.0 …    saved by a wrapper: DistributedDataParallel, torch.compile, FSDP
 *   lm_head.weight                        a copy of a tied parameter
 */

/** A stored tensor with some of a parameter's rows: the files have query, key and value, and the model one matrix. */
export interface PartOf {
  readonly parameter: string;
  readonly part: number; // 0 … parts − 1, in the order of the rows
  readonly parts: number;
}

/** How the names in files fit those of a model. */
export interface NamesInFiles {
  /** The names under which a parameter is saved: several where each has as many of its rows. Its own without this. */
  storedAs?(parameter: string): readonly string[];
  /** Other names, in the same form, under which files may have it. */
  alsoStoredAs?(parameter: string): readonly string[] | undefined;
  /** The prefix of the names of a base model's parameters: "bert.". The base model's own files leave it out. */
  readonly basePrefix?: string;
  /** The parameters that a tied model has once, by the names under which files may have them again. */
  readonly copies?: Readonly<Record<string, string>>;
  /** Names of tensors that files may have besides, and that the model computes or does not use. */
  readonly unused?: RegExp;
}

/** The role of a stored tensor in a model; undefined for one that the model does not know. */
export type TensorRole = PartOf | { readonly copyOf: string } | "unused" | undefined;

/** A module that stands anywhere in a name: those of torch.compile, of FSDP, and of activation checkpointing. */
const inside = /(^|\.)(_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module)\./g;
/**
 * A prefix of all names: that of DistributedDataParallel, or what scripts call the dictionary or the attribute of the
 * model.
 */
const inFront = /^(module|model|state_dict)\./;

/** The meaning of names in files, for a model with these parameters. */
export function meaningsOf(parameters: Iterable<string>, names: NamesInFiles = {}): (stored: string) => TensorRole {
  const { basePrefix = "", copies = {}, unused } = names;
  const known = new Map<string, Exclude<TensorRole, "unused" | undefined>>();
  for (const [copy, parameter] of Object.entries(copies)) known.set(copy, { copyOf: parameter });
  for (const parameter of parameters) {
    for (const stored of [[parameter], names.alsoStoredAs?.(parameter), names.storedAs?.(parameter)])
      for (const [part, name] of stored?.entries() ?? []) known.set(name, { parameter, part, parts: stored!.length });
  }
  return (stored) => {
    for (const inner of unwrapped(stored))
      for (const name of [inner, basePrefix + inner, withoutPrefix(inner, basePrefix)]) {
        if (unused?.test(name)) return "unused";
        const found = known.get(name);
        if (found) return found;
      }
    return undefined;
  };
}

const withoutPrefix = (name: string, prefix: string) => (name.startsWith(prefix) ? name.slice(prefix.length) : name);

/** A name as it is, and without each of what wraps it. */
function* unwrapped(stored: string): Generator<string> {
  yield stored;
  let name = stored;
  for (let before = ""; name !== before; ) {
    before = name;
    name = name.replace(inside, "$1"); // where two touch, the next round finds the second
    if (name !== before) yield name;
  }
  while (inFront.test(name)) {
    name = name.replace(inFront, "");
    yield name;
  }
}
