import { homedir, release } from "node:os";
import { dirname, join } from "node:path";
import { addons, buildState } from "../dependencies/addons.ts";
import { aptRelease } from "../dependencies/apt.ts";
import { armIsHere, armRemedy, canInstallArm, findArm } from "../dependencies/arm.ts";
import { browserRemedy, canInstallBrowser, findBrowser } from "../dependencies/browser.ts";
import { compilerVersion, findBuildTools } from "../dependencies/build-tools.ts";
import { findCuda } from "../dependencies/cuda.ts";
import { findGloo } from "../dependencies/gloo.ts";
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
import { paint } from "../steps.ts";
import { toolchain } from "../toolchain.ts";
import { which } from "../which.ts";

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

/** Prints what is installed, what is missing and the command that installs it; changes nothing. Exit code 1 if the user must act. */
export async function doctor(asJson: boolean): Promise<void> {
  const findings = await examine();
  const ready = findings.every((finding) => finding.state !== "missing");
  if (asJson) process.stdout.write(`${JSON.stringify({ ready, toolchain, findings }, null, 2)}\n`);
  else process.stdout.write(report(findings));
  if (!ready) process.exitCode = 1;
}

export async function examine(): Promise<Finding[]> {
  const environment: Environment = {};
  const libraries = [await libtorch(environment), await gloo(environment), mpi(environment)];
  const python = await findPython3();
  // pip's NVIDIA wheels are beside a torch.
  const wheels = [environment.libtorch?.root, python?.torch]
    .filter((path) => path !== undefined)
    .map((path) => dirname(path));
  return [
    machine(),
    node(),
    await npm(),
    pnpm(),
    packages(),
    ...libraries,
    ...builds(environment),
    ...(await buildTools()),
    python3(python),
    await pip(python?.executable),
    await testPython(),
    testBrowser(),
    testArm(),
    testSlurm(),
    await nccl(wheels, environment.libtorch?.root),
    await cuda(wheels),
  ];
}

const setUp = "./terse setup";

function machine(): Finding {
  const { model, cores, memoryBytes, simd } = findProcessor();
  const system = aptRelease() ?? `${process.platform} ${release()}`;
  return {
    name: "machine",
    state: "ok",
    version: simd,
    note: `${model}, ${cores} cores, ${Math.round(memoryBytes / 2 ** 30)} GiB, ${system}, ${process.arch}`,
  };
}

function node(): Finding {
  const temporary = !process.execPath.startsWith(toolchain) && which("node") !== process.execPath;
  const pinned = process.env["TERSE_NODE_VERSION"] ?? process.versions.node;
  if (temporary)
    return { name: "Node", state: "later", note: `24 or newer is needed; ${pinned} will be fetched`, remedy: setUp };
  return { name: "Node", state: "ok", version: process.versions.node, path: process.execPath };
}

async function npm(): Promise<Finding> {
  const path = which("npm");
  if (path !== undefined) return { name: "npm", state: "ok", version: (await ask("npm", ["--version"])) ?? "", path };
  // npm only fetches pnpm and Node.
  return { name: "npm", state: findPnpm() ? "without" : "missing", remedy: "sudo apt-get install npm" };
}

function pnpm(): Finding {
  const path = findPnpm();
  return path
    ? { name: "pnpm", state: "ok", version: pnpmVersion, path: join(path, "pnpm") }
    : { name: "pnpm", state: "later", remedy: setUp };
}

function packages(): Finding {
  return packagesAreInstalled()
    ? { name: "packages", state: "ok", note: "as in pnpm-lock.yaml" }
    : { name: "packages", state: "later", note: "not installed, or not those of pnpm-lock.yaml", remedy: setUp };
}

async function libtorch(environment: Environment): Promise<Finding> {
  try {
    const { found, skipped } = await findLibtorch();
    environment.libtorch = found;
    const note = skipped.map((reason) => `skipped: ${reason}`).join("; ");
    if (found === undefined)
      return { name: "libtorch", state: "later", note: note || "540 MB to fetch", remedy: setUp };
    return {
      name: "libtorch",
      state: "ok",
      version: found.version,
      path: found.root,
      note: note || `from ${found.source}`,
    };
  } catch (error) {
    return invalid("libtorch", error);
  }
}

async function gloo(environment: Environment): Promise<Finding> {
  try {
    const found = findGloo();
    environment.gloo = found;
    if (found !== undefined) return { name: "Gloo", state: "ok", path: found.library, note: `from ${found.source}` };
    if (aptRelease() === undefined)
      return {
        name: "Gloo",
        state: "without",
        note: "not installed; only the engine gloo needs it",
        remedy: "install Gloo's development package, or set TERSE_GLOO",
      };
    return { name: "Gloo", state: "later", note: "or: sudo apt-get install libgloo-dev", remedy: setUp };
  } catch (error) {
    return invalid("Gloo", error);
  }
}

function mpi(environment: Environment): Finding {
  try {
    const found = findMpi();
    if (found !== undefined) environment.mpi = found;
    if (found !== undefined) return { name: "MPI", state: "ok", path: found.path, note: `from ${found.source}` };
    const note = `not installed; only the engine mpi needs it; ${setUp} installs Open MPI, for tests`;
    return { name: "MPI", state: "without", note, remedy: `${mpiRemedy}, or set TERSE_MPI` };
  } catch (error) {
    return invalid("MPI", error);
  }
}

function builds(environment: Environment): Finding[] {
  return addons.map((addon) => {
    const name = `native ${addon}`;
    const state = buildState(addon, environment);
    if (state === "current") return { name, state: "ok", note: "built" };
    return {
      name,
      state: "later",
      note: state === "changed" ? "its sources or tools have changed" : "not built",
      remedy: setUp,
    };
  });
}

async function buildTools(): Promise<Finding[]> {
  const { compiler, cmake, make } = findBuildTools();
  const findings: Finding[] = [];
  const compiled = compiler.path ? await compilerVersion(compiler.path) : undefined;
  if (compiled === undefined) findings.push({ name: "compiler", state: "missing", remedy: compiler.remedy });
  else if (!compiled.enough)
    findings.push({
      name: "compiler",
      state: "missing",
      version: compiled.text,
      note: "C++20 needs g++ 10 or clang 12",
      remedy: compiler.remedy,
    });
  else findings.push({ name: "compiler", state: "ok", version: compiled.text, path: compiler.path! });
  for (const tool of [cmake, make]) {
    const version = tool.path ? /\d+(\.\d+)+/.exec((await ask(tool.path, ["--version"])) ?? "")?.[0] : undefined;
    if (tool.path === undefined) findings.push({ name: tool.name, state: "missing", remedy: tool.remedy });
    else findings.push({ name: tool.name, state: "ok", version: version ?? "", path: tool.path });
  }
  return findings;
}

function python3(found: Awaited<ReturnType<typeof findPython3>>): Finding {
  if (found === undefined) return { name: "python3", state: "missing", remedy: "sudo apt-get install python3" };
  const { version, executable: path } = found;
  if (withinReleases(version, pythonRange)) return { name: "python3", state: "ok", version, path };
  return {
    name: "python3",
    state: "missing",
    version,
    path,
    note: `PyTorch's wheels are for ${pythonRange.from} to ${pythonRange.to}`,
    remedy: "put such a Python first on the PATH",
  };
}

async function pip(python: string | undefined): Promise<Finding> {
  const version = python && /pip (\S+)/.exec((await ask(python, ["-m", "pip", "--version"])) ?? "")?.[1];
  if (version) return { name: "pip", state: "ok", version };
  return aptRelease()
    ? { name: "pip", state: "later", remedy: setUp }
    : { name: "pip", state: "missing", remedy: "python3 -m ensurepip --user" };
}

async function testPython(): Promise<Finding> {
  const name = "test Python";
  try {
    const path = await findPython();
    if (path !== undefined) return { name, state: "ok", path };
    return {
      name,
      state: "later",
      note: "torch, numpy, safetensors, transformers, timm, tensorboard; 4.8 GB on disk, for tests only",
      remedy: setUp,
    };
  } catch (error) {
    return invalid(name, error);
  }
}

function testBrowser(): Finding {
  const name = "test browser";
  try {
    const path = findBrowser();
    if (path !== undefined) return { name, state: "ok", path };
    if (!canInstallBrowser)
      return { name, state: "without", note: "not installed; only tests use it", remedy: browserRemedy };
    return { name, state: "later", note: "a headless Chromium; 210 MB on disk, for tests only", remedy: setUp };
  } catch (error) {
    return invalid(name, error);
  }
}

function testArm(): Finding {
  const name = "test ARM";
  if (armIsHere) return { name, state: "ok", note: "this machine" };
  try {
    const found = findArm();
    if (found !== undefined) return { name, state: "ok", path: found.emulator, note: found.compiler };
    if (!canInstallArm())
      return { name, state: "without", note: "not installed; only tests use it", remedy: armRemedy };
    return { name, state: "later", note: "a cross compiler and QEMU; 200 MB on disk, for tests only", remedy: setUp };
  } catch (error) {
    return invalid(name, error);
  }
}

function testSlurm(): Finding {
  const name = "test Slurm";
  try {
    const found = findSlurm();
    if (found !== undefined) return { name, state: "ok", path: found.controller };
    if (!canInstallSlurm())
      return { name, state: "without", note: "not installed; only tests use it", remedy: slurmRemedy };
    return { name, state: "later", note: "a Slurm of one node; 20 MB on disk, for tests only", remedy: setUp };
  } catch (error) {
    return invalid(name, error);
  }
}

async function nccl(wheels: readonly string[], libtorch: string | undefined): Promise<Finding> {
  const engine = await askNcclEngine(libtorch);
  const found = engine?.path ? { path: engine.path, version: engine.version } : await findNccl(wheels);
  // The built engine knows best: it may find a library that it cannot use, or no GPU.
  const note = engine && !engine.available ? `not usable: ${engine.reason}` : undefined;
  if (found === undefined)
    return {
      name: "NCCL",
      state: "without",
      note: process.env["TERSE_NCCL"] && note ? note : "not installed; only GPUs need it",
      remedy: "pip install nvidia-nccl-cu13, or sudo apt-get install libnccl2",
    };
  return {
    name: "NCCL",
    state: note === undefined ? "ok" : "without",
    version: found.version ?? "",
    path: found.path,
    ...(note && { note }),
  };
}

async function cuda(wheels: readonly string[]): Promise<Finding> {
  const { driver, devices, compiler } = await findCuda(wheels);
  const nvcc = compiler ? `nvcc ${shortened(compiler)}` : `no nvcc: ${setUp} installs one`;
  if (driver === undefined)
    return {
      name: "CUDA",
      state: "without",
      note: `no NVIDIA driver, ${nvcc}`,
      remedy: "sudo apt-get install nvidia-driver, where there is an NVIDIA GPU",
    };
  return { name: "CUDA", state: "ok", version: `driver ${driver}`, note: [...devices, nvcc].join("; ") };
}

function invalid(name: string, error: unknown): Finding {
  if (!(error instanceof StepFailed)) throw error;
  return { name, state: "missing", remedy: error.message };
}

const marks = { ok: ["green", "✓"], later: ["yellow", "○"], without: ["dim", "–"], missing: ["red", "✗"] } as const;

/** One line for each finding, with the command that installs it below; then a summary. */
export function report(findings: readonly Finding[]): string {
  const out = process.stdout;
  const width = Math.max(...findings.map((finding) => finding.name.length)) + 2;
  const lines = findings.flatMap(({ name, state, version, path, note, remedy }) => {
    const [colour, mark] = marks[state];
    const installs = remedy === setUp ? `${setUp} installs it` : undefined;
    const absent = state === "missing" && version === undefined ? "missing" : undefined;
    const words = [
      absent,
      version,
      path && shortened(path),
      ...[note, installs].map((text) => text && paint(out, "dim", text)),
    ];
    const line = `  ${paint(out, colour, mark)} ${name.padEnd(width)}${words.filter(Boolean).join("  ")}`;
    return remedy && !installs ? [line, `    ${" ".repeat(width)}${paint(out, "dim", "→")} ${remedy}`] : [line];
  });
  return `${lines.join("\n")}\n\n${verdict(findings)}\n`;
}

function verdict(findings: readonly Finding[]): string {
  const named = (state: State) => findings.filter((finding) => finding.state === state).map((finding) => finding.name);
  const [missing, later] = [named("missing"), named("later")];
  if (missing.length > 0) return `Missing: ${missing.join(", ")}. The lines with → say how to install them.`;
  if (later.length > 0) return `${setUp} installs what is missing: ${later.join(", ")}.`;
  return "Everything is installed.";
}

function shortened(path: string): string {
  const home = homedir();
  return path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path;
}
