import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Handle, native, type OperatorId, type OperatorResult } from "@terse/native-tensor";
import { Tensor } from "@terse/tensor";
import { vi } from "vitest";
import { emulatedKernels } from "../../../../tools/testing/emulated-kernels.ts";

/** The name of the emulated device. */
export const gpu = "cuda:0";

const sources = join(import.meta.dirname, "../../../../native");
const variables = ["TERSE_OPTIMIZERS_CUDA", "TERSE_CODECS_CUDA", "TERSE_CUDA_DRIVER", "FAKE_CUDA_ANY_MEMORY"] as const;

/**
 * A GPU whose memory is the CPU's: the CUDA kernels of optimizers and codecs, compiled for the CPU, and a CUDA driver
 * that copies within this process. Inside `run` tensors can be made on cuda:0 and moved there and back. libtorch's
 * operators on them run on the CPU, and throw where one has tensors of both devices, as libtorch does. So what checks
 * devices takes the GPU's way or refuses.
 */
export class EmulatedGpu implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "terse-emulated-gpu-"));
  readonly #before = variables.map((name) => process.env[name]);

  /** Compiles for some seconds. */
  constructor() {
    process.env["TERSE_OPTIMIZERS_CUDA"] = emulatedKernels("optimizers");
    process.env["TERSE_CODECS_CUDA"] = emulatedKernels("codecs");
    const driver = join(this.#folder, "libcuda.so.1");
    const flags = ["-std=c++20", "-O1", "-fPIC", "-shared", "-pthread", "-fvisibility=hidden", "-fno-gnu-unique"];
    execFileSync(process.env["CXX"] || "c++", [...flags, "-o", driver, join(sources, "collectives/fake/cuda.cc")]);
    process.env["TERSE_CUDA_DRIVER"] = driver;
    process.env["FAKE_CUDA_ANY_MEMORY"] = "1";
  }

  run<R>(use: () => Promise<R>): Promise<R> {
    return withEmulatedTensors(use);
  }

  [Symbol.dispose](): void {
    for (const [i, name] of variables.entries()) {
      const value = this.#before[i];
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Emulates the GPU's tensors alone, for code that runs no kernel of ours: nothing is compiled. */
export async function withEmulatedTensors<R>(use: () => Promise<R>): Promise<R> {
  const tensors = new EmulatedTensors();
  try {
    return await use();
  } finally {
    tensors.restore();
  }
}

/** Remembers the device of every tensor, and keeps it from libtorch. */
class EmulatedTensors {
  readonly #devices = new Map<Handle, string>();
  readonly #results = new Map<OperatorId, readonly OperatorResult[]>();
  readonly #clone = native.find("aten::clone");
  readonly #call = native.call;
  #copies = false; // the operator is copy_
  readonly #copy = Tensor.prototype.copy_;
  readonly #grad = native.grad;
  readonly #setData = native.setData;
  readonly #fromBytes = native.fromBytes;
  readonly #spies = [
    vi.spyOn(native, "call").mockImplementation((...given) => this.#operate(...given)),
    vi.spyOn(native, "device").mockImplementation((tensor) => this.#deviceOf(tensor)),
    vi.spyOn(native, "openDevice").mockImplementation((device) => device),
    vi.spyOn(native, "fromBytes").mockImplementation((...given) => this.#on("cpu", this.#fromBytes(...given))),
    vi.spyOn(native, "grad").mockImplementation((tensor) => {
      const gradient = this.#grad(tensor);
      return gradient === null ? null : this.#on(this.#deviceOf(tensor), gradient);
    }),
    vi.spyOn(native, "setData").mockImplementation((tensor, data) => {
      this.#on(this.#deviceOf(data), tensor);
      this.#setData(tensor, data);
    }),
    vi.spyOn(Tensor.prototype, "copy_").mockImplementation(this.#copying(this.#copy)),
  ];

  restore(): void {
    for (const spy of this.#spies) spy.mockRestore();
  }

  #deviceOf(tensor: Handle): string {
    return this.#devices.get(tensor) ?? "cpu";
  }

  #on(device: string, tensor: Handle): Handle {
    this.#devices.set(tensor, device);
    return tensor;
  }

  #operate(operator: OperatorId, ...values: unknown[]): unknown {
    const given = values.flat().filter((value): value is Handle => this.#devices.has(value as Handle));
    const wanted = values.find((value) => value === "cpu" || value === gpu) as string | undefined;
    const device = wanted ?? (given.some((tensor) => this.#devices.get(tensor) === gpu) ? gpu : "cpu");
    const other = given.find((tensor) => this.#devices.get(tensor) !== device);
    if (wanted === undefined && !this.#copies && other !== undefined && native.shape(other).length > 0)
      throw new Error("this operator has tensors on the CPU and on the GPU");
    const raw = this.#call(operator, ...values.map((value) => (value === gpu ? "cpu" : value)));
    const [kind, ...more] = this.#resultsOf(operator);
    if (more.length > 0) for (const [i, one] of [kind, ...more].entries()) this.#record(one, raw[i], device);
    else if (kind === "tensor" && other !== undefined) return this.#moved(raw, device);
    else this.#record(kind, raw, device);
    return raw;
  }

  #resultsOf(operator: OperatorId): readonly OperatorResult[] {
    const known = this.#results.get(operator) ?? native.results(operator);
    this.#results.set(operator, known);
    return known;
  }

  #record(kind: OperatorResult | undefined, raw: unknown, device: string): void {
    if (kind === "tensor" && raw !== null) this.#on(device, raw as Handle);
    if (kind === "tensors") for (const tensor of raw as Handle[]) this.#on(device, tensor);
  }

  /** A tensor that comes from the other device has memory of its own. */
  #moved(tensor: Handle, device: string): Handle {
    const copy = this.#call(this.#clone, tensor) as Handle;
    native.dispose(tensor);
    return this.#on(device, copy);
  }

  #copying(copy: Tensor["copy_"]): Tensor["copy_"] {
    const emulated = this;
    return function (this: Tensor, ...given) {
      emulated.#copies = true;
      try {
        return copy.apply(this, given);
      } finally {
        emulated.#copies = false;
      }
    };
  }
}
