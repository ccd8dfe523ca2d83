import { type Handle } from "@terse/native-tensor";
/** A handle and the scope that owns it: the base of Tensor. */
export declare class Resource {
    #private;
    constructor(handle: Handle);
}
export declare const handleOf: (resource: Resource) => Handle;
/** Frees a tensor now. A second call does nothing. */
export declare const dispose: (resource: Resource) => void;
/** Takes a tensor out of its scope, so that it lives until `dispose()` or until it is garbage-collected. Returns the tensor. */
export declare function keep<T extends Resource>(tensor: T): T;
/**
 * Runs `body`, then frees every tensor that was created in it, except those that were kept or are returned. Returned tensors, at any depth
 * of arrays, plain objects, maps and sets, move to the enclosing scope. For an async `body` the tensors are freed when its promise settles.
 *
 * Without a scope, tensors wait for the garbage collector, and Node frees what it has found only when the event loop turns: a synchronous
 * loop without a scope frees nothing before it ends, however much memory it takes. Call `scope` for each of its iterations.
 */
export declare function scope<T>(body: () => T): T;
/** Number of live tensors of this thread, and bytes of their memory. Memory that several views share counts once. */
export declare const memory: () => {
    tensors: number;
    bytes: number;
};
