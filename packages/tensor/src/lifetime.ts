/**
 * Who frees a tensor. The garbage collector sees a handle of a few bytes and lets gigabytes wait, so a tensor belongs to the
 * scope it was born in, and goes with it. One born outside any scope, or kept, goes by dispose(), or at last by the collector.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { type Handle, native } from "@terse/native-tensor";

// An owner per asynchronous context, not one global stack: two scopes that wait for each other must not swap their tensors.
const owner = new AsyncLocalStorage<Scope>();

class Scope {
  readonly parent: Scope | undefined;
  members: Resource[] = [];
  open = true;

  constructor(parent: Scope | undefined) {
    this.parent = parent;
  }
}

/** The scope that owns what is born now: a closed one (work that outlived it) passes on to the next one out. */
function currentScope(): Scope | undefined {
  let scope = owner.getStore();
  while (scope !== undefined && !scope.open) scope = scope.parent;
  return scope;
}

const forgotten = new FinalizationRegistry<Handle>((handle) => native.dispose(handle));

let handleIn: (resource: Resource) => Handle;
let close: (scope: Scope, survivors: Set<Resource> | undefined) => void;
let free: (resource: Resource) => void;
let moveOut: (resource: Resource) => void;

/** A handle and its owner. Tensor is the one that people see. */
export class Resource {
  #handle: Handle;
  #scope: Scope | undefined;

  constructor(handle: Handle) {
    this.#handle = handle;
    const scope = currentScope();
    this.#scope = scope;
    if (scope === undefined) this.#watch();
    else scope.members.push(this);
  }

  #watch(): void {
    native.keep(this.#handle);
    forgotten.register(this, this.#handle, this);
  }

  static {
    handleIn = (resource) => resource.#handle;

    close = (scope, survivors) => {
      scope.open = false;
      const { members } = scope;
      scope.members = []; // a timer started in the scope keeps the scope, and must not keep its tensors
      const outer = currentScope();
      const handles = new Float64Array(members.length);
      let count = 0;
      for (const member of members) {
        if (member.#scope !== scope) continue; // kept, disposed or moved
        if (survivors?.has(member)) {
          member.#scope = outer;
          if (outer === undefined) member.#watch();
          else outer.members.push(member);
        } else {
          handles[count++] = member.#handle;
        }
      }
      if (count > 0) native.disposeAll(handles, count);
    };

    free = (resource) => {
      if (resource.#scope === undefined) forgotten.unregister(resource);
      resource.#scope = undefined;
      native.dispose(resource.#handle);
    };

    moveOut = (resource) => {
      if (resource.#scope === undefined)
        native.keep(resource.#handle); // kept already, or disposed, which it says
      else resource.#watch();
      resource.#scope = undefined;
    };
  }
}

export const handleOf = handleIn!;

/** Frees at once; a second time does nothing. */
export const dispose = free!;

/** Takes the tensor out of its scope: it lives until `dispose()`, or until nothing refers to it any more. Returns it. */
export function keep<T extends Resource>(tensor: T): T {
  moveOut(tensor);
  return tensor;
}

/**
 * Runs `body`, then frees every tensor that was born in it, except those that are kept and those that it returns, at any depth
 * of arrays, plain objects, maps and sets; these belong to the scope around. An async `body` is waited for.
 */
export function scope<T>(body: () => T): T {
  const inner = new Scope(currentScope());
  let result: T;
  try {
    result = owner.run(inner, body);
  } catch (error) {
    close(inner, undefined);
    throw error;
  }
  if (!isPromise(result)) {
    close(inner, resourcesIn(result));
    return result;
  }
  return result.then(
    (value) => {
      close(inner, resourcesIn(value));
      return value;
    },
    (error) => {
      close(inner, undefined);
      throw error;
    },
  ) as T;
}

/** Live tensors of this thread, and the bytes of the memory under them; views of one memory count it once. */
export const memory = (): { tensors: number; bytes: number } => native.memory();

function isPromise(value: unknown): value is Promise<unknown> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}

function resourcesIn(value: unknown): Set<Resource> | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const found = new Set<Resource>();
  const seen = new Set<object>();
  const left: unknown[] = [value];
  while (left.length > 0) {
    const next = left.pop();
    if (typeof next !== "object" || next === null || seen.has(next) || ArrayBuffer.isView(next)) continue;
    seen.add(next);
    if (next instanceof Resource) found.add(next);
    else if (next instanceof Map) left.push(...next.keys(), ...next.values());
    else if (Array.isArray(next) || next instanceof Set) for (const element of next) left.push(element);
    else left.push(...Object.values(next));
  }
  return found;
}
