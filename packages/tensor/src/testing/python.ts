/** Runs scripts in PyTorch, whose results are the reference of tests. */
import { type ChildProcessByStdio, execFileSync, spawn } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import type { Socket } from "node:net";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import type { DType, TypedArray } from "@terse/native-tensor";
import { typedArrayFor } from "../dtype.ts";
import { fromTypedArray } from "../factories.ts";
import type { Tensor } from "../tensor.ts";

/** A Python with PyTorch: TERSE_PYTHON, else the newest python-… of the toolchain folder that has it. */
export const python: string | undefined = findPython();

/** The end of a test's name that says why the test is skipped. */
export const needsPython =
  python === undefined ? " (skipped: neither TERSE_PYTHON nor the toolchain folder has a Python with torch)" : "";

/** The end of a test's name that says which of these Python modules are missing, so that it is skipped; else "". */
export function needsModules(...names: string[]): string {
  if (python === undefined) return needsPython;
  const missing = names.filter((name) => !hasModules(python!, [name]));
  return missing.length === 0 ? "" : ` (skipped: ${python} has no ${missing.join(", ")}; ./terse setup installs it)`;
}

function findPython(): string | undefined {
  const named = process.env["TERSE_PYTHON"];
  const toolchain =
    process.env["TERSE_TOOLCHAIN"] || join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "terse");
  const found = existsSync(toolchain) ? readdirSync(toolchain) : [];
  const candidates = named
    ? [named]
    : found
        .filter((name) => name.startsWith("python-"))
        .sort()
        .reverse()
        .map((name) => join(toolchain, name, "bin", "python"));
  return candidates.find((file) => existsSync(file) && hasModules(file, ["torch", "numpy"]));
}

/** The version of that PyTorch, "2.13.0". A seed gives the same random numbers only in the same version. */
export const pythonTorchVersion: string | undefined =
  python &&
  execFileSync(python, ["-c", "import importlib.metadata as m; print(m.version('torch').split('+')[0])"], {
    encoding: "utf8",
  }).trim();

function hasModules(file: string, names: readonly string[]): boolean {
  try {
    const question = "import importlib.util as u, sys; sys.exit(any(u.find_spec(m) is None for m in sys.argv[1:]))";
    execFileSync(file, ["-c", question, ...names]);
    return true;
  } catch {
    return false;
  }
}

// One process serves all scripts of a test file: importing torch takes longer than most of them.
const server = `
import json, os, sys, traceback
import numpy, torch
import torch.nn as nn, torch.nn.functional as F
dtypes = dict(f32=torch.float32, f64=torch.float64, i64=torch.int64, i32=torch.int32, u8=torch.uint8, bool=torch.bool)
names = {v: k for k, v in dtypes.items()}

def read(folder, name, dtype, shape):
    raw = bytearray(open(os.path.join(folder, name + ".in"), "rb").read())
    t = torch.frombuffer(raw, dtype=dtypes[dtype]) if raw else torch.empty(0, dtype=dtypes[dtype])
    return t.clone().reshape(shape)

def serve(folder):
    manifest = json.load(open(os.path.join(folder, "inputs.json")))
    inputs, outputs = {name: read(folder, name, *what) for name, what in manifest.items()}, {}
    script = open(os.path.join(folder, "script.py")).read()
    exec(compile(script, "script.py", "exec"), dict(globals(), inputs=inputs, outputs=outputs))
    manifest = {}
    for name, t in outputs.items():
        t = torch.as_tensor(t).detach().contiguous()
        manifest[name] = [names[t.dtype], list(t.shape)]
        open(os.path.join(folder, name + ".out"), "wb").write(t.numpy().tobytes())
    json.dump(manifest, open(os.path.join(folder, "outputs.json"), "w"))

answers, sys.stdout = sys.stdout, sys.stderr  # what a script or a library prints is no answer
for line in sys.stdin:
    try:
        serve(line.rstrip("\\n"))
        answer = ""
    except Exception:
        answer = traceback.format_exc()
    print(json.dumps(answer), file=answers, flush=True)
`;

let child: { process: ChildProcessByStdio<Writable, Readable, null>; answers: AsyncIterator<string> } | undefined;

/** Sends a folder to the Python process and waits for its answer. An idle process does not keep Node alive. */
async function ask(file: string, folder: string): Promise<void> {
  if (child === undefined) {
    const process = spawn(file, ["-u", "-c", server], { stdio: ["pipe", "pipe", "inherit"] });
    child = { process, answers: createInterface({ input: process.stdout })[Symbol.asyncIterator]() };
  }
  const { process, answers } = child;
  const handles = [process, process.stdin as Socket, process.stdout as Socket];
  for (const handle of handles) handle.ref();
  process.stdin.write(`${folder}\n`);
  const { value, done } = await answers.next();
  for (const handle of handles) handle.unref();
  if (done) throw new Error("runPython: Python ended without an answer; its standard error says why");
  const problem = JSON.parse(value) as string;
  if (problem !== "") throw new Error(`runPython: ${problem}`);
}

let last: Promise<unknown> = Promise.resolve();

/**
 * Runs a Python script, with torch, nn, F and numpy: `inputs` are its tensors; what it writes to `outputs` is returned.
 */
export function runPython(script: string, inputs: Record<string, Tensor> = {}): Promise<Record<string, Tensor>> {
  const mine = last.then(() => runOne(script, inputs)); // one request at a time
  last = mine.catch(() => {});
  return mine;
}

async function runOne(script: string, inputs: Record<string, Tensor>): Promise<Record<string, Tensor>> {
  if (python === undefined) throw new Error("runPython: no Python with torch was found; set TERSE_PYTHON to one");
  const folder = await mkdtemp(join(tmpdir(), "terse-python-"));
  try {
    const manifest: Record<string, [DType, readonly number[]]> = {};
    for (const [name, tensor] of Object.entries(inputs)) {
      manifest[name] = [tensor.dtype, tensor.shape];
      await writeFile(join(folder, `${name}.in`), new Uint8Array((await tensor.toTypedArray()).buffer));
    }
    await writeFile(join(folder, "inputs.json"), JSON.stringify(manifest));
    await writeFile(join(folder, "script.py"), script);
    await ask(python, folder);

    const outputs: Record<string, Tensor> = {};
    const results = JSON.parse(await readFile(join(folder, "outputs.json"), "utf8")) as typeof manifest;
    for (const [name, [dtype, shape]] of Object.entries(results)) {
      const length = shape.reduce((a, b) => a * b, 1);
      const array: TypedArray = typedArrayFor(dtype, length);
      new Uint8Array(array.buffer).set(await readFile(join(folder, `${name}.out`)));
      outputs[name] = fromTypedArray(array, shape, { dtype });
    }
    return outputs;
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** ‖a − b‖ / ‖b‖, in f64; 0 for two zeros. */
export function relativeError(a: Tensor, b: Tensor): number {
  if (a.shape.join() !== b.shape.join()) throw new RangeError(`relativeError: [${a.shape}] and [${b.shape}] differ`);
  const [x, y] = [a.detach().to("f64"), b.detach().to("f64")];
  const difference = x.sub(y).norm().item();
  return difference === 0 ? 0 : difference / y.norm().item();
}
