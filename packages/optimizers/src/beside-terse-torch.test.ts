/** The Python package terse_torch beside the optimizers here, on the same gradients: its hooks, and its LionCub. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Arena, fromTypedArray, Module, noGrad, Parameter } from "@terse/tensor";
import { afterAll, describe, expect, it } from "vitest";
import { needsPython, python } from "../../tensor/src/testing/python.ts";
import { anyCodec, type GradientCompression, lionCub, Optimizer, terngrad } from "./index.ts";
import { meansOf } from "./testing/gradient-contract.ts";
import { onRanks } from "./testing/on-ranks.ts";

const codecs = join(import.meta.dirname, "../../codecs");
const built = join(codecs, "../../native/codecs/build/libterse_codecs.a");
const scratch = mkdtempSync(join(tmpdir(), "terse-beside-torch-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const [steps, n] = [12, 704]; // n: no pads
const lr = 0.01;

const gradient = (rank: number, step: number) =>
  Float32Array.from(
    { length: n },
    (_, i) => Math.sin(i * 12.9898 + step * 78.233 + rank * 3.7) * Math.exp(Math.cos(i)),
  );

const hooks: Record<string, () => GradientCompression> = {
  "CompensatedMean(model)": () => anyCodec({ codec: "scaled-sign" }),
  "four_bits(model)": () => anyCodec({ codec: "l1", bits: 4, block: 512 }),
  "int8(model)": () => anyCodec({ codec: "int8", block: 512 }),
  'CompensatedMean(model, "linf", bits=4, seed=5)': () => anyCodec({ codec: "linf", bits: 4, seed: 5 }),
  "TernGrad(model)": () => terngrad(),
  "TernGrad(model, clip=0, seed=3)": () => terngrad({ clip: 0, seed: 3 }),
};

const lionCubs = { 1: () => lionCub({ weightDecay: 0.1 }), 4: () => lionCub({ weightDecay: 0.1, bits: 4 }) };

class OneVector extends Module {
  readonly w = new Parameter(fromTypedArray(new Float32Array(n), [n]), { role: "vector" });
}

/** Results are f32 in a file for each case, number of ranks and rank. */
const program = `
import json, sys, numpy, torch, terse_torch
from ranks import on_ranks

class OneVector(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.zeros(${n}))
    def forward(self, g):
        return (self.w * g).sum()

def all_cases(rank, ranks, folder, hooks, bits_of_lion_cub):
    gradients = numpy.fromfile(f"{folder}/gradients.{rank}", numpy.float32).reshape(-1, ${n})
    def write(name, values):
        numpy.stack(values).tofile(f"{folder}/{name}.{ranks}.{rank}")
    for i, hook in enumerate(hooks):
        model = torch.nn.parallel.DistributedDataParallel(OneVector())
        state = eval("terse_torch." + hook)
        model.register_comm_hook(state, terse_torch.hook)
        means = []
        for g in gradients:
            model.zero_grad()
            model(torch.from_numpy(g)).backward()
            means.append(model.module.w.grad.numpy().copy())
        write(f"hook{i}", means)
    for bits in bits_of_lion_cub:
        w = torch.nn.Parameter(torch.zeros(${n}))
        optimizer = terse_torch.LionCub([("w", w)], lr=${lr}, weight_decay=0.1, bits=bits)
        values = []
        for g in gradients:
            w.grad = torch.from_numpy(g)
            optimizer.step()
            values.append(w.detach().numpy().copy())
        write(f"lion-cub{bits}", values)

if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    for ranks in given["worlds"]:
        on_ranks(ranks, all_cases, given["folder"], given["hooks"], given["bits"])
`;

function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): void {
  const { status, stdout, stderr } = spawnSync(command, args, { env: { ...process.env, ...env }, encoding: "utf8" });
  expect(status, `${stdout}${stderr}`).toBe(0);
}

/** What Python makes of the gradients: files by case, ranks and rank. */
function inPython(worlds: readonly number[]): void {
  const whole = ["-Wl,--whole-archive", built, "-Wl,--no-whole-archive", "-lm"];
  const library = join(scratch, "libterse_codecs.so");
  run(process.env["CC"] ?? "cc", ["-shared", "-o", library, ...whole]);
  writeFileSync(join(scratch, "beside.py"), program);
  for (let rank = 0; rank < Math.max(...worlds); rank++)
    writeFileSync(
      join(scratch, `gradients.${rank}`),
      Buffer.concat(gradientsOf(rank).map(({ buffer }) => Buffer.from(buffer))),
    );
  const bits = Object.keys(lionCubs).map(Number);
  const given = { worlds, folder: scratch, hooks: Object.keys(hooks), bits };
  run(python!, [join(scratch, "beside.py"), JSON.stringify(given)], {
    PYTHONPATH: [join(codecs, "torch"), join(codecs, "python"), join(codecs, "python/tests")].join(":"),
    TERSE_CODECS_LIBRARY: library,
  });
}

const gradientsOf = (rank: number) => Array.from({ length: steps }, (_, step) => gradient(rank, step));

function expectClose(name: string, ranks: number, rank: number, expected: readonly (readonly number[])[]): void {
  const bytes = readFileSync(join(scratch, `${name}.${ranks}.${rank}`));
  const got = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
  expect(got).toHaveLength(steps * n);
  for (const [step, values] of expected.entries()) {
    const largest = Math.max(...values.map(Math.abs));
    const worst = Math.max(...values.map((value, i) => Math.abs(value - got[step * n + i]!)));
    expect(worst / largest, `${name}, ${ranks} ranks, step ${step}`).toBeLessThanOrEqual(1e-5);
  }
}

describe.skipIf(!python)(`terse_torch on 2 and 3 ranks${needsPython}`, () => {
  it("goes the way of the optimizers here, within rounding", { timeout: 600_000 }, async (context) => {
    if (!existsSync(built)) context.skip("the native codecs are not built: `./terse setup`");
    const worlds = [2, 3];
    inPython(worlds);
    for (const ranks of worlds) {
      for (const [i, create] of Object.values(hooks).entries())
        await onRanks(ranks, async (group) => {
          const { means } = await meansOf(group, create(), gradientsOf(group.rank));
          expectClose(`hook${i}`, ranks, group.rank, means);
        });
      for (const [bits, create] of Object.entries(lionCubs))
        await onRanks(ranks, async (group) => {
          const arena = new Arena(new OneVector());
          const optimizer = new Optimizer(arena, group, { algorithm: create(), compareEvery: 0 });
          const values: number[][] = [];
          for (const g of gradientsOf(group.rank)) {
            noGrad(() => arena.gradients.narrow(0, 0, n).copy_(fromTypedArray(g)));
            await optimizer.step({ lr });
            values.push([...((await arena.parameters.toTypedArray()) as Float32Array)].slice(0, n));
          }
          await optimizer[Symbol.asyncDispose]();
          expectClose(`lion-cub${bits}`, ranks, group.rank, values);
        });
    }
  });
});
