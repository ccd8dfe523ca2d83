import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { root } from "../toolchain.ts";
import { which } from "../which.ts";

const targets = { codecs: "terse_codecs_cuda_emulated", optimizers: "optimizers_cuda_emulated" } as const;

/**
 * The library with the CUDA kernels of a part, compiled for the CPU, with the addresses of the CPU's memory for those
 * of a GPU's. It is compiled where it is not current, by one process at a time.
 */
export function emulatedKernels(part: keyof typeof targets): string {
  const folder = join(root, "native", part, "cuda", "build", "emulated");
  mkdirSync(folder, { recursive: true });
  const flock = which("flock");
  const alone = flock === undefined ? [] : [flock, "-x", join(folder, "lock")];
  const run = (...words: string[]) => {
    const [program, ...more] = [...alone, ...words];
    execFileSync(program!, more, { stdio: "pipe" });
  };
  run("cmake", "-S", join(root, "native", part, "cuda"), "-B", folder);
  run("cmake", "--build", folder, "--target", targets[part], "--parallel", "2");
  return join(folder, `lib${targets[part]}.so`);
}
