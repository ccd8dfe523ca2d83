import type { Tensor } from "../tensor.ts";
/** A Python with PyTorch: TERSE_PYTHON, else the newest python-… of the toolchain folder that has it. */
export declare const python: string | undefined;
/** The end of a test's name that says why the test is skipped. */
export declare const needsPython: string;
/** The end of a test's name that says which of these Python modules are missing, so that it is skipped; else "". */
export declare function needsModules(...names: string[]): string;
/** The version of that PyTorch, "2.13.0". A seed gives the same random numbers only in the same version. */
export declare const pythonTorchVersion: string | undefined;
/**
 * Runs a Python script, with torch, nn, F and numpy: `inputs` are its tensors; what it writes to `outputs` is returned.
 */
export declare function runPython(script: string, inputs?: Record<string, Tensor>): Promise<Record<string, Tensor>>;
/** ‖a − b‖ / ‖b‖, in f64; 0 for two zeros. */
export declare function relativeError(a: Tensor, b: Tensor): number;
