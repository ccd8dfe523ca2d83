import { release } from "node:os";
import { dirname, join } from "node:path";
import { addons, buildState } from "../dependencies/addons.ts";
import { aptRelease } from "../dependencies/apt.ts";
import { armIsHere, armRemedy, canInstallArm, findArm } from "../dependencies/arm.ts";
import { browserRemedy, canInstallBrowser, findBrowser } from "../dependencies/browser.ts";
import { compilerVersion, findBuildTools } from "../dependencies/build-tools.ts";
import { findCuda } from "../dependencies/cuda.ts";
import { findGloo } from "../dependencies/gloo.ts";
import { kernelsAreBuilt } from "../dependencies/gpu-kernels.ts";
import { findLibtorch } from "../dependencies/libtorch.ts";
import { findMpi, mpiRemedy } from "../dependencies/mpi.ts";
import { askNcclEngine, findNccl } from "../dependencies/nccl.ts";
import { packagesAreInstalled } from "../dependencies/packages.ts";
import { findPnpm, pnpmVersion } from "../dependencies/pnpm.ts";
import { findProcessor } from "../dependencies/processor.ts";
import { findPython } from "../dependencies/python.ts";
import { findPython3 } from "../dependencies/python3.ts";
import { canInstallSlurm, findSlurm, slurmRemedy } from "../dependencies/slurm.ts";
import { pythonRange, withinReleases } from "../dependencies/versions.ts";
import type { Environment } from "../environment.ts";
import { StepFailed } from "../remedy.ts";
import { ask } from "../run.ts";
import { toolchain } from "../toolchain.ts";
import { which } from "../which.ts";
import { shortened } from "./shortened.ts";

/** `ok`: installed; `later`: ./terse setup installs it; `without`: optional; `missing`: the user must install it. */
export type State = "ok" | "later" | "without" | "missing";

export interface Finding {
  name: string;
  state: State;
  version?: string;
  path?: string;
  note?: string;
  remedy?: string; // the command that installs it
}

export const setUp = "./terse setup";

type Found = Omit<Finding, "name">;

const ok = (facts: Omit<Found, "state"> = {}): Found => ({ state: "ok", ...facts });
const later = (note?: string): Found => ({ state: "later", ...(note && { note }), remedy: setUp });
const without = (note: string, remedy: string): Found => ({ state: "without", note, remedy });
const missing = (remedy: string, facts: Omit<Found, "state"> = {}): Found => ({ state: "missing", ...facts, remedy });

/** What is looked for. A variable of the environment that names something wrong is an error, and the remedy says so. */
async function finding(name: string, look: () => Found | Promise<Found>): Promise<Finding> {
  try {
    return { name, ...(await look()) };
  } catch (error) {
    if (!(error instanceof StepFailed)) throw error;
    return { name, ...missing(error.message) };
  }
}

/** What is installed, and what is not, in the order of the report. */
export async function examine(): Promise<Finding[]> {
  const environment: Environment = {};
  const libraries = [
    await finding("libtorch", () => libtorch(environment)),
    await finding("Gloo", () => gloo(environment)),
    await finding("MPI", () => mpi(environment)),
  ];
  const python = await findPython3();
  // pip's NVIDIA wheels are beside a torch.
  const wheels = [environment.libtorch?.root, python?.torch]
    .filter((path) => path !== undefined)
    .map((path) => dirname(path));
  return [
    await finding("machine", machine),
    await finding("Node", node),
    await finding("npm", npm),
    await finding("pnpm", pnpm),
    await finding("packages", packages),
    ...libraries,
    ...(await Promise.all(addons.map((addon) => finding(`native ${addon}`, () => build(addon, environment))))),
    ...(await buildTools()),
    await finding("python3", () => python3(python)),
    await finding("pip", () => pip(python?.executable)),
    await finding("test Python", testPython),
    await finding("test browser", testBrowser),
    await finding("test ARM", testArm),
    await finding("test Slurm", testSlurm),
    await finding("NCCL", () => nccl(wheels, environment.libtorch?.root)),
    await finding("CUDA", () => cuda(wheels)),
  ];
}

function machine(): Found {
  const { model, cores, memoryBytes, simd } = findProcessor();
  const system = aptRelease() ?? `${process.platform} ${release()}`;
  const memory = Math.round(memoryBytes / 2 ** 30);
  return ok({ version: simd, note: `${model}, ${cores} cores, ${memory} GiB, ${system}, ${process.arch}` });
}

function node(): Found {
  const temporary = !process.execPath.startsWith(toolchain) && which("node") !== process.execPath;
  const pinned = process.env["TERSE_NODE_VERSION"] ?? process.versions.node;
  if (temporary) return later(`24 or newer is needed; ${pinned} will be fetched`);
  return ok({ version: process.versions.node, path: process.execPath });
}

async function npm(): Promise<Found> {
  const path = which("npm");
  if (path !== undefined) return ok({ version: (await ask("npm", ["--version"])) ?? "", path });
  // npm only fetches pnpm and Node.
  return { state: findPnpm() ? "without" : "missing", remedy: "sudo apt-get install npm" };
}

function pnpm(): Found {
  const path = findPnpm();
  return path ? ok({ version: pnpmVersion, path: join(path, "pnpm") }) : later();
}

function packages(): Found {
  return packagesAreInstalled()
    ? ok({ note: "as in pnpm-lock.yaml" })
    : later("not installed, or not those of pnpm-lock.yaml");
}

async function libtorch(environment: Environment): Promise<Found> {
  const { found, skipped } = await findLibtorch();
  environment.libtorch = found;
  const note = skipped.map((reason) => `skipped: ${reason}`).join("; ");
  if (found === undefined) return later(note || "540 MB to fetch");
  return ok({ version: found.version, path: found.root, note: note || `from ${found.source}` });
}

function gloo(environment: Environment): Found {
  const found = findGloo();
  environment.gloo = found;
  if (found !== undefined) return ok({ path: found.library, note: `from ${found.source}` });
  if (aptRelease() !== undefined) return later("or: sudo apt-get install libgloo-dev");
  return without(
    "not installed; only the engine gloo needs it",
    "install Gloo's development package, or set TERSE_GLOO",
  );
}

function mpi(environment: Environment): Found {
  const found = findMpi();
  if (found === undefined)
    return without(
      `not installed; only the engine mpi needs it; ${setUp} installs Open MPI, for tests`,
      `${mpiRemedy}, or set TERSE_MPI`,
    );
  environment.mpi = found;
  return ok({ path: found.path, note: `from ${found.source}` });
}

function build(addon: (typeof addons)[number], environment: Environment): Found {
  const state = buildState(addon, environment);
  if (state === "current") return ok({ note: "built" });
  return later(state === "changed" ? "its sources or tools have changed" : "not built");
}

async function buildTools(): Promise<Finding[]> {
  const { compiler, cmake, make } = findBuildTools();
  const compiled = compiler.path ? await compilerVersion(compiler.path) : undefined;
  const of = (): Found => {
    if (compiled === undefined) return missing(compiler.remedy);
    if (compiled.enough) return ok({ version: compiled.text, path: compiler.path! });
    return missing(compiler.remedy, { version: compiled.text, note: "C++20 needs g++ 10 or clang 12" });
  };
  const findings = [await finding("compiler", of)];
  for (const { name, path, remedy } of [cmake, make]) {
    const version = path ? /\d+(\.\d+)+/.exec((await ask(path, ["--version"])) ?? "")?.[0] : undefined;
    findings.push({ name, ...(path === undefined ? missing(remedy) : ok({ version: version ?? "", path })) });
  }
  return findings;
}

function python3(found: Awaited<ReturnType<typeof findPython3>>): Found {
  if (found === undefined) return missing("sudo apt-get install python3");
  const { version, executable: path } = found;
  if (withinReleases(version, pythonRange)) return ok({ version, path });
  const note = `PyTorch's wheels are for ${pythonRange.from} to ${pythonRange.to}`;
  return missing("put such a Python first on the PATH", { version, path, note });
}

async function pip(python: string | undefined): Promise<Found> {
  const version = python && /pip (\S+)/.exec((await ask(python, ["-m", "pip", "--version"])) ?? "")?.[1];
  if (version) return ok({ version });
  return aptRelease() ? later() : missing("python3 -m ensurepip --user");
}

async function testPython(): Promise<Found> {
  const path = await findPython();
  return path === undefined
    ? later("torch, transformers, timm, trl, tensorboard, wandb, mlflow; 5.4 GB on disk, for tests only")
    : ok({ path });
}

/** A finding about something that only tests use. `size`: what ./terse setup installs, where it can. */
function forTests(found: Omit<Found, "state"> | undefined, canInstall: boolean, size: string, remedy: string): Found {
  if (found !== undefined) return ok(found);
  return canInstall ? later(`${size} on disk, for tests only`) : without("not installed; only tests use it", remedy);
}

function testBrowser(): Found {
  const path = findBrowser();
  const found = path === undefined ? undefined : { path };
  return forTests(found, canInstallBrowser, "a headless Chromium; 210 MB", browserRemedy);
}

function testArm(): Found {
  if (armIsHere) return ok({ note: "this machine" });
  const arm = findArm();
  const found = arm && { path: arm.emulator, note: arm.compiler };
  return forTests(found, canInstallArm(), "a cross compiler and QEMU; 200 MB", armRemedy);
}

function testSlurm(): Found {
  const slurm = findSlurm();
  const found = slurm && { path: slurm.controller };
  return forTests(found, canInstallSlurm(), "a Slurm of one node; 20 MB", slurmRemedy);
}

async function nccl(wheels: readonly string[], libtorch: string | undefined): Promise<Found> {
  const engine = await askNcclEngine(libtorch);
  const found = engine?.path ? { path: engine.path, version: engine.version } : await findNccl(wheels);
  // The built engine knows best: it may find a library that it cannot use, or no GPU.
  const note = engine && !engine.available ? `not usable: ${engine.reason}` : undefined;
  if (found === undefined)
    return without(
      process.env["TERSE_NCCL"] && note ? note : "not installed; only GPUs need it",
      "pip install nvidia-nccl-cu13, or sudo apt-get install libnccl2",
    );
  const facts = { version: found.version ?? "", path: found.path };
  return note === undefined ? ok(facts) : { state: "without", ...facts, note };
}

const kernelsText = () =>
  kernelsAreBuilt() ? "kernels built" : `kernels: ${setUp} builds them, or the first command with --device=cuda`;

async function cuda(wheels: readonly string[]): Promise<Found> {
  const { driver, devices, compiler } = await findCuda(wheels);
  const nvcc = compiler ? `nvcc ${shortened(compiler)}` : `no nvcc: ${setUp} installs one`;
  return driver === undefined
    ? without(`no NVIDIA driver, ${nvcc}`, "sudo apt-get install nvidia-driver, where there is an NVIDIA GPU")
    : ok({ version: `driver ${driver}`, note: [...devices, nvcc, kernelsText()].join("; ") });
}
