import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { readRecipe } from "../recipe.ts";
import type { Line } from "./numbers-of.ts";
import { Tracker } from "./tracker.ts";

const python = process.env["TERSE_PYTHON"] ?? "python3";
const has = (module: string) => spawnSync(python, ["-c", `import ${module}`]).status === 0;
const orWhy = (module: string, isThere: boolean) =>
  isThere ? "" : ` (skipped: ${python} has no ${module}; ./terse setup installs it)`;

let folder: string;
let notes: string[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-tracker-"));
  notes = [];
});
afterEach(() => {
  vi.unstubAllEnvs();
  vi.useRealTimers();
  rmSync(folder, { recursive: true, force: true });
});

const lines: readonly Line[] = [
  { step: 0, "val/loss": 5.5 },
  { step: 0, "train/loss": 5.25, "ranks/compute_seconds": [0.5, 0.75], emulated_link: "100 Mbit/s" },
  { step: 300, "train/loss": 2.125, "layers/names": ["a.weight"], "layers/ties": [0.375], grad_norm: Number.NaN },
];

const recipeWith = (...overrides: string[]) => readRecipe("gpt-small", overrides);

/** Hands lines to a tracker, and resolves when its process has ended. The run waits until the tracker has said a word. */
async function tracked(
  name: "wandb" | "mlflow",
  to: string,
  { shown = lines, code = 0, recipe = recipeWith("track.project=a b", "track.name=mine"), waits = true } = {},
): Promise<void> {
  const before = notes.length;
  const tracker = new Tracker(name, to, { folder, recipe }, (text) => notes.push(text));
  for (const line of shown) tracker.show(line);
  if (waits) await vi.waitFor(() => expect(notes.length).toBeGreaterThan(before), 120_000);
  if (code >= 0) tracker.ended(code);
  tracker[Symbol.dispose]();
  await tracker.left;
}

const read = (...args: string[]) =>
  JSON.parse(
    execFileSync(python, [fileURLToPath(new URL("testing/read-tracked.py", import.meta.url)), ...args], {
      encoding: "utf8",
    }),
  ) as Record<string, unknown>;

const hasWandb = has("wandb.proto.wandb_internal_pb2");
describe.skipIf(!hasWandb)(`Weights & Biases${orWhy("wandb", hasWandb)}`, () => {
  it("has the numbers under their names, the recipe, and a resumed run under the same id, in files for wandb sync", async () => {
    await tracked("wandb", "offline", { code: 130 });
    await tracked("wandb", "offline", { shown: [{ step: 310, "train/loss": 1.5 }] });
    const files = globSync(join(folder, "wandb", "offline-run-*", "run-*.wandb")).sort();
    expect(notes).toEqual(
      files.map(() => expect.stringMatching(/^tracked by wandb: wandb sync \S*\/wandb\/offline-run-\S+$/)),
    );
    const { wandb: id } = JSON.parse(readFileSync(join(folder, "track.json"), "utf8")) as { wandb: string };
    expect(files.length).toBeGreaterThan(0);
    for (const file of files) expect(file).toContain(`run-${id}.wandb`);
    const run = read("wandb", ...files) as { config: Record<string, object>; history: object[]; exits: number[] };
    expect(run).toMatchObject({ id, project: "a b", name: "mine" });
    expect(run.config).toMatchObject({ optimizer: { name: recipeWith().optimizer.name }, steps: recipeWith().steps });
    expect(run.history).toMatchObject([
      {
        _step: 0,
        "val/loss": 5.5,
        "train/loss": 5.25,
        "ranks/compute_seconds/0": 0.5,
        "ranks/compute_seconds/1": 0.75,
      },
      { _step: 300, "train/loss": 2.125, "layers/ties/a.weight": 0.375 },
      { _step: 310, "train/loss": 1.5 },
    ]);
    expect(run.exits).toEqual([130, 0]);
  });
});

const hasMlflow = has("mlflow");
describe.skipIf(!hasMlflow)(`MLflow${orWhy("mlflow", hasMlflow)}`, () => {
  it("has the numbers under their names, the recipe as parameters, and a resumed run under the same id", async () => {
    const store = join(folder, "store");
    await tracked("mlflow", store, { code: -1 }); // it dies
    const dead = read("mlflow", store, "a b");
    expect(dead).toMatchObject({ name: "mine", status: "FAILED" });
    const recipe = recipeWith("track.project=a b", "steps=77");
    await tracked("mlflow", store, { shown: [{ step: 310, "train/loss": 1.5 }], recipe });
    const run = read("mlflow", store, "a b");
    expect(run).toMatchObject({
      id: dead["id"],
      status: "FINISHED",
      metrics: {
        "val/loss": [[0, 5.5]],
        "train/loss": [
          [0, 5.25],
          [300, 2.125],
          [310, 1.5],
        ],
        "ranks/compute_seconds/1": [[0, 0.75]],
        "layers/ties/a.weight": [[300, 0.375]],
      },
      params: { "optimizer.name": recipe.optimizer.name, steps: String(recipeWith().steps) },
      tags: { "resumed.steps": "77" },
    });
    expect(notes).toEqual([0, 1].map(() => `tracked by mlflow: run ${run["id"]} of the experiment a b`));
  });

  it("that fails after it has made a run has one run, also after the next try", async () => {
    writeFileSync(
      join(folder, "sitecustomize.py"),
      `from mlflow.tracking import MlflowClient
real = MlflowClient.log_batch
def fails_once(*args, **named):
    MlflowClient.log_batch = real
    raise OSError("gone for a moment")
MlflowClient.log_batch = fails_once
`,
    );
    vi.stubEnv("PYTHONPATH", [folder, process.env["PYTHONPATH"]].join(delimiter));
    const store = join(folder, "store");
    const tracker = new Tracker("mlflow", store, { folder, recipe: recipeWith("track.project=a b") }, (text) =>
      notes.push(text),
    );
    tracker.show(lines[0]!);
    await vi.waitFor(() => expect(notes).toHaveLength(1), 60_000);
    tracker.show(lines[1]!);
    tracker.ended(0);
    tracker[Symbol.dispose]();
    await tracker.left;
    const run = read("mlflow", store, "a b"); // there is one
    expect(run).toMatchObject({ status: "FINISHED", metrics: { "val/loss": [[0, 5.5]] }, params: { steps: "500" } });
    expect(JSON.parse(readFileSync(join(folder, "track.json"), "utf8"))).toEqual({ mlflow: run["id"] });
    expect(notes).toEqual([
      "track.mlflow: gone for a moment; tried again with the next numbers; the run goes on",
      `tracked by mlflow: run ${run["id"]} of the experiment a b`,
    ]);
  });

  it("that opens after the run has ended keeps its id, so that a resumed run goes on there", async () => {
    writeFileSync(
      join(folder, "sitecustomize.py"),
      `import os, time
while not os.path.exists(${JSON.stringify(join(folder, "may open"))}):
    time.sleep(0.02)
`,
    );
    writeFileSync(join(folder, "track.json"), '{"wandb":"abc"}');
    vi.stubEnv("PYTHONPATH", [folder, process.env["PYTHONPATH"]].join(delimiter));
    vi.useFakeTimers();
    const store = join(folder, "store");
    const ended = tracked("mlflow", store, { waits: false });
    vi.advanceTimersByTime(100_000);
    await ended;
    vi.useRealTimers();
    expect(notes).toEqual([expect.stringMatching(/has not sent everything within 5 s, and goes on by itself/)]);
    writeFileSync(join(folder, "may open"), "");
    const ids = () => JSON.parse(readFileSync(join(folder, "track.json"), "utf8")) as Record<string, string>;
    await vi.waitFor(() => expect(Object.keys(ids())).toEqual(["wandb", "mlflow"]), 60_000);
    await vi.waitFor(() => expect(read("mlflow", store, "a b")).toMatchObject({ status: "FINISHED" }), 60_000);
    expect(ids()).toEqual({ wandb: "abc", mlflow: read("mlflow", store, "a b")["id"] });
  });

  it("that does not answer costs one line, and no time of the run", async () => {
    vi.stubEnv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0");
    await tracked("mlflow", "http://127.0.0.1:9");
    expect(notes).toEqual([expect.stringMatching(/^track\.mlflow: .*; the run goes on$/)]);
    expect(readFileSync(join(folder, "mlflow.log"), "utf8")).toContain("127.0.0.1");
  });
});

it.skipIf(!hasWandb || !hasMlflow)(
  `asks no server where numbers go to files, not the clients' makers either${orWhy("wandb", hasWandb) || orWhy("mlflow", hasMlflow)}`,
  async () => {
    writeFileSync(
      join(folder, "sitecustomize.py"),
      `import socket
real = socket.getaddrinfo
def noted(host, *args, **named):
    open(${JSON.stringify(join(folder, "hosts"))}, "a").write(f"{host}\\n")
    return real(host, *args, **named)
socket.getaddrinfo = noted
`,
    );
    vi.stubEnv("PYTHONPATH", [folder, process.env["PYTHONPATH"]].join(delimiter));
    for (const name of ["CI", "DO_NOT_TRACK", "WANDB_ERROR_REPORTING", "MLFLOW_DISABLE_TELEMETRY"])
      vi.stubEnv(name, undefined);
    await tracked("wandb", "offline");
    await tracked("mlflow", join(folder, "store"));
    expect(notes).toHaveLength(2);
    expect(globSync(join(folder, "hosts")).map((file) => readFileSync(file, "utf8"))).toEqual([]);
  },
);

it("says in one line that there is no Python, or that it lacks the client", async () => {
  vi.stubEnv("TERSE_PYTHON", join(folder, "none"));
  await tracked("wandb", "offline");
  expect(notes).toEqual([expect.stringMatching(/^track\.wandb: Python cannot be started: .*ENOENT; the run goes on$/)]);

  notes = [];
  const bare = join(folder, "bare");
  writeFileSync(bare, `#!/bin/sh\nexec ${python} -S "$@"\n`); // -S: without installed packages
  chmodSync(bare, 0o755);
  vi.stubEnv("TERSE_PYTHON", bare);
  vi.stubEnv("PYTHONPATH", "");
  await tracked("mlflow", "auto");
  expect(notes).toEqual([
    expect.stringMatching(/^track\.mlflow: .* has no mlflow: pip install mlflow; the run goes on$/),
  ]);
});

it("goes on where its process dies, and where the folder cannot be written to it throws", async () => {
  const dies = join(folder, "dies");
  writeFileSync(dies, "#!/bin/sh\nexit 3\n");
  chmodSync(dies, 0o755);
  vi.stubEnv("TERSE_PYTHON", dies);
  await tracked("wandb", "offline");
  expect(notes).toEqual([
    "track.wandb: its process has ended (exit code 3); see wandb.log of the run; the run goes on",
  ]);
  expect(existsSync(join(folder, "track.json"))).toBe(false);
  mkdirSync(join(folder, "mlflow.log"));
  expect(() => new Tracker("mlflow", "auto", { folder, recipe: recipeWith("track.name=x") }, () => {})).toThrow(
    "EISDIR",
  );
});

it("that has ended before the run is not said to go on", async () => {
  const ends = join(folder, "ends");
  writeFileSync(ends, `#!/bin/sh\necho '{"warning": "it had enough"}'\n`);
  chmodSync(ends, 0o755);
  vi.stubEnv("TERSE_PYTHON", ends);
  const tracker = new Tracker("wandb", "offline", { folder, recipe: recipeWith("track.name=x") }, (text) =>
    notes.push(text),
  );
  await tracker.left;
  vi.useFakeTimers();
  tracker[Symbol.dispose]();
  vi.advanceTimersByTime(100_000);
  expect(notes).toEqual(["track.wandb: it had enough; the run goes on"]);
});

it("whose input ends within a line ends too, as after a run that has died", () => {
  const asked = { tracker: "mlflow", to: join(folder, "store"), folder, project: "a", name: "b", id: null, config: {} };
  const input = `${JSON.stringify(asked)}\n{"step": 1, "num`;
  const program = fileURLToPath(new URL("track.py", import.meta.url));
  const { status, signal } = spawnSync(python, [program], { input, timeout: 250_000, killSignal: "SIGKILL" });
  expect([status, signal]).toEqual([0, null]);
});

it("takes no password in a recipe, and names a wrong word", () => {
  expect(() => recipeWith("track.mlflow=https://me:secret@example.org")).toThrow(/MLFLOW_TRACKING_PASSWORD/);
  expect(() => recipeWith("track.wandb=onlin")).toThrow(
    /expected one of offline, online, got "onlin"; did you mean online\?/,
  );
});
