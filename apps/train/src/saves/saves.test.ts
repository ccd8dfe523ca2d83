/** Ranks of one process, each with a folder of its own: machines without a shared disk. Or all with the same folder. */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { getPriority, hostname, tmpdir } from "node:os";
import { basename, join } from "node:path";
import { CheckpointError, readSafetensors, writeManifest } from "@terse/checkpoint";
import { type Group, loopback } from "@terse/collectives";
import type { Model } from "@terse/models";
import { Arena, noGrad, type Tensor } from "@terse/tensor";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { endAtOperation } from "../../../../tools/testing/end-at-operation.ts";
import { BestSoFar } from "../best-so-far.ts";
import { buildData, buildModel, buildOptimizer } from "../build.ts";
import { evaluate } from "../evaluate.ts";
import type { Parts } from "../parts.ts";
import { type Recipe, readRecipe } from "../recipe.ts";
import { checkSpace } from "./disk-space.ts";
import { findSave, gatherSave } from "./find-save.ts";
import { lockFolder } from "./folder-lock.ts";
import { loadModelOf } from "./model-of-run.ts";
import { openRun } from "./open-run.ts";
import { restoreSave } from "./restore-save.ts";
import type { SaveFailure } from "./run.ts";
import { NotFiniteError, type SaveFiles, writeFiles } from "./save-files.ts";
import { readSave, removeLeftovers, saveFolder, savesIn } from "./save-folder.ts";
import { ThreadWriter, type Writer } from "./thread-writer.ts";
import { copyState, type Place, type SavedParts, writeCopy } from "./write-save.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-saves-"));
  writeFileSync(join(folder, "text"), "the quick brown fox jumps over the lazy dog. ".repeat(200));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const recipe = (): Recipe =>
  readRecipe("gpt-small", ["model.preset=nano", "model.layers=1", `data.path=${JSON.stringify(join(folder, "text"))}`]);
const imageRecipe = (): Recipe =>
  readRecipe("gpt-small", [
    "model.name=resnet",
    "model.preset=resnet18-cifar",
    "model.width=4",
    "data.name=made-images",
    "data.size=8",
  ]);
const disk = (name: string) => {
  mkdirSync(join(folder, name), { recursive: true });
  return join(folder, name);
};

const onThisThread: Writer = { write: writeFiles };

async function writeSave(step: number, place: Place, parts: SavedParts, group: Group): Promise<void> {
  await writeCopy(await copyState(step, place.recipe, parts, group.rank), place, group, onThisThread);
}

interface OnRank {
  readonly group: Group;
  readonly parts: Parts;
  readonly arena: Arena;
  readonly place: Place;
}

/** Runs a task on ranks whose run's folders are these. */
async function onRanks<T>(
  runs: readonly string[],
  task: (rank: OnRank) => Promise<T>,
  recipeOfRun: () => Recipe = recipe,
): Promise<T[]> {
  const groups = loopback(runs.length);
  try {
    return await Promise.all(
      groups.map(async (group) => {
        const run = runs[group.rank]!;
        if (group.rank > 0) await group.barrier(); // rank 0 keeps its folder
        using lock = await lockFolder(run, { start: "this", rank: group.rank });
        if (group.rank === 0) await group.barrier();
        await group.barrier();
        const model = buildModel(recipeOfRun());
        const arena = new Arena(model);
        const data = await buildData(recipeOfRun(), model, group);
        await using optimizer = await buildOptimizer(recipeOfRun(), arena, group);
        const result = await task({
          group,
          arena,
          parts: { model, data, optimizer },
          place: { run, recipe: recipeOfRun(), lock, saves: new Set(), best: undefined },
        });
        await group.barrier();
        return result;
      }),
    );
  } finally {
    await Promise.all(groups.map((group) => group.close()));
  }
}

/** Gives parameters, momenta and the position in the data values that differ by step, momenta also by rank. */
async function arrive(step: number, { group, arena, parts }: OnRank): Promise<void> {
  noGrad(() => arena.parameters.fill_(step));
  const { tensors } = await parts.optimizer.state();
  noGrad(() => {
    for (const tensor of tensors.values()) tensor.fill_(step + group.rank);
  });
  while (parts.data.state().step < step) for (const batch of await parts.data.next()) batch[Symbol.dispose]();
}

const save = (step: number, runs: readonly string[]) =>
  onRanks(runs, async (rank) => {
    await arrive(step, rank);
    await writeSave(step, rank.place, rank.parts, rank.group);
  });

/**
 * What every rank holds after it has gone on from the newest save: the first parameter, the first momentum, the step of
 * the data.
 */
const resume = (runs: readonly string[]) =>
  onRanks(runs, async ({ group, arena, parts, place }) => {
    const { manifest } = await findSave(place.run, group);
    const reader = await gatherSave(place.run, manifest, place.lock, group);
    await restoreSave(place.run, manifest, parts, { reader, group });
    const [momentum] = (await parts.optimizer.state()).tensors.values();
    const first = async (tensor: Tensor) => Number(((await tensor.toTypedArray()) as Float32Array)[0]);
    return [await first(arena.parameters), await first(momentum!), parts.data.state().step];
  });

const files = (run: string, step: number) => readdirSync(join(run, `step-${step}`)).sort();

describe("machines without a shared disk", () => {
  it("keep what their ranks wrote, and go on from it", async () => {
    const [a, b] = [disk("a"), disk("b")];
    await save(3, [a, b]);
    expect(files(a, 3)).toEqual(["config.json", "manifest.json", "model.safetensors", "state-rank-0.safetensors"]);
    expect(files(b, 3)).toEqual(["state-rank-1.safetensors"]);
    expect(await resume([a, b])).toEqual([
      [3, 3, 3],
      [3, 4, 3],
    ]);
    expect(files(b, 3)).toEqual(["state-rank-1.safetensors"]); // nothing was copied
  });

  it("give each other what a rank needs, where ranks have moved", async () => {
    const [a, b] = [disk("a"), disk("b")];
    await save(3, [a, b]);
    expect(await resume([b, a])).toEqual([
      [3, 3, 3],
      [3, 4, 3],
    ]);
    expect(files(b, 3)).toContain("state-rank-0.safetensors");
  });

  it("give all states to another number of ranks, also to a new machine: momenta of votes are averaged", async () => {
    const [a, b, c] = [disk("a"), disk("b"), disk("c")];
    await save(3, [a, b]);
    expect(await resume([a, b, c])).toEqual(Array.from({ length: 3 }, () => [3, 3.5, 3]));
    expect(await resume([a])).toEqual([[3, 3.5, 3]]);
  });

  it("name the rank whose file no machine has", async () => {
    const [a, b] = [disk("a"), disk("b")];
    await save(3, [a, b]);
    rmSync(join(b, "step-3"), { recursive: true });
    await expect(resume([a, b])).rejects.toThrow(
      `state-rank-1.safetensors, which rank 1 wrote on ${hostname()}: no rank's disk has it. Start a rank on that machine, or copy the file.`,
    );
  });
});

/** A group that is lost at its collective operation number `last`, counted from 0: before that has begun, or after. */
function lostAt(last: number, when: "before" | "after", group: Group): Group {
  let count = 0;
  return new Proxy(group, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      return async (...args: unknown[]) => {
        const at = count++;
        if (at < last || (at === last && when === "after")) {
          const result: unknown = await value.apply(target, args);
          if (at < last) return result;
        }
        target.abort("the network is away");
        throw new Error("the network is away");
      };
    },
  });
}

describe("the save of machines without a shared disk that lose each other", () => {
  it.each([0, 1])("is complete on both, or the one before it is: rank %i is lost at any moment", async (lost) => {
    const [before, reached] = [[disk("a"), disk("b")], new Set<unknown>()];
    await save(1, before);
    const kept = { ...recipe(), save: { every: 1, keep: 1, best: false } };
    for (const when of ["before", "after"] as const)
      for (let last = 0, isLost = true; isLost; last++) {
        const runs = before.map((run) => disk(`${basename(run)}-${when}-${last}`));
        for (const [i, run] of runs.entries()) cpSync(before[i]!, run, { recursive: true });
        isLost = false;
        await onRanks(runs, async (rank) => {
          await arrive(2, rank);
          const copy = await copyState(2, kept, rank.parts, rank.group.rank);
          const place = { ...rank.place, recipe: kept, saves: new Set([1]) };
          const group = rank.group.rank === lost ? lostAt(last, when, rank.group) : rank.group;
          await writeCopy(copy, place, group, onThisThread);
        }).catch(() => {
          isLost = true;
        });
        const [[first], [second]] = (await resume(runs)) as [[number], [number]];
        expect(first, `lost ${when} operation ${last}`).toBe(second);
        reached.add(first);
      }
    expect([...reached].sort()).toEqual([1, 2]);
  });
});

describe("a model with dropout", () => {
  const recipe = () =>
    readRecipe("gpt-small", [
      "model.name=gpt2",
      "model.preset=tiny",
      "model.vocabulary=256",
      "model.layers=1",
      "model.dropout=0.5",
      `data.path=${JSON.stringify(join(folder, "text"))}`,
    ]);
  const losses = async ({ parts }: OnRank) => {
    const found: number[] = [];
    for (let i = 0; i < 3; i++) {
      const [batch] = await parts.data.next();
      found.push(noGrad(() => parts.model.loss(batch!).item()));
    }
    return found;
  };

  it("goes on with the random numbers that it would have drawn", async () => {
    const run = disk("run");
    const [expected] = await onRanks(
      [run],
      async (rank) => {
        await losses(rank);
        await writeSave(1, rank.place, rank.parts, rank.group);
        return losses(rank);
      },
      recipe,
    );
    const [found] = await onRanks(
      [run],
      async (rank) => {
        const { manifest } = await findSave(run, rank.group);
        await restoreSave(run, manifest, rank.parts, { reader: 0, group: rank.group });
        return losses(rank);
      },
      recipe,
    );
    expect(found).toEqual(expected);
    expect(new Set(expected).size).toBe(3);
  });
});

describe("a model with running statistics", () => {
  const statistics = async (model: Model) =>
    JSON.stringify(
      await Promise.all(
        model.namedBuffers().map(async ([name, t]) => [name, [...(await t.toTypedArray())].map(Number)]),
      ),
    );

  it("has rank 0's in its saves, and on all ranks after a save was loaded", async () => {
    const run = disk("run");
    const saved = await onRanks(
      [run, run],
      async ({ group, parts, place }) => {
        const [batch] = await parts.data.next(); // other images on each rank
        noGrad(() => parts.model.loss(batch!));
        await writeSave(1, place, parts, group);
        return statistics(parts.model);
      },
      imageRecipe,
    );
    expect(saved[0]).toContain('["bn1.num_batches_tracked",[1]]');
    expect(saved[1]).not.toBe(saved[0]);
    const resumed = await onRanks(
      [run, run, run],
      async ({ group, parts, place }) => {
        const { manifest } = await findSave(place.run, group);
        const reader = await gatherSave(place.run, manifest, place.lock, group);
        await restoreSave(place.run, manifest, parts, { reader, group });
        return statistics(parts.model);
      },
      imageRecipe,
    );
    expect(resumed).toEqual([saved[0], saved[0], saved[0]]);
    expect(await statistics(await loadModelOf(run))).toBe(saved[0]);
  });

  it("is evaluated with rank 0's on all ranks, so that a resumed run gives the same values", async () => {
    const run = disk("run");
    const ranks = await onRanks(
      [run, run],
      async ({ group, parts: { model, data } }) => {
        const [batch] = await data.next();
        noGrad(() => model.loss(batch!));
        const before = await statistics(model);
        const metrics = await evaluate(model, data, 16, group);
        return { before, after: await statistics(model), metrics };
      },
      imageRecipe,
    );
    expect(Object.keys(ranks[0]!.metrics)).toEqual(["loss", "accuracy"]);
    expect(ranks[1]!.metrics).toEqual(ranks[0]!.metrics);
    expect(ranks.map(({ after }) => after)).toEqual([ranks[0]!.before, ranks[0]!.before]);
    expect(ranks[1]!.before).not.toBe(ranks[0]!.before);
  });
});

describe("a save", () => {
  it("goes on with more ranks and with fewer on one disk", async () => {
    const run = disk("run");
    await save(2, [run, run]);
    expect(await resume([run])).toEqual([[2, 2.5, 2]]);
    expect(await resume([run, run, run])).toEqual(Array.from({ length: 3 }, () => [2, 2.5, 2]));
    await save(4, [run, run, run]);
    expect(await resume([run, run])).toEqual(Array.from({ length: 2 }, () => [4, 5, 4]));
  });

  /** The notes of a run, new or resumed, that takes no step and is saved. */
  const notesOn = async (disks: readonly string[], overrides: string[] = [], recipeOfRun = recipe) => {
    const out = join(folder, "run");
    const [notes] = await onRanks(
      disks.map(disk),
      async (rank) => {
        const resumed = savesIn(out).length > 0;
        const given = { recipe: undefined, initFrom: undefined, overrides };
        const where = resumed ? { ...given, out: undefined, resume: out } : { ...given, out, resume: undefined };
        await rank.group.barrier();
        await using run = await openRun(resumed ? undefined : recipeOfRun(), rank.group, where);
        await run.begin(rank.parts);
        await run.save(run.step + 1);
        return run.notes;
      },
      recipeOfRun,
    );
    return notes!;
  };

  it("says what other ranks take of it", async () => {
    await notesOn(["a"]);
    expect(await notesOn(["a", "b"])).toContain("each rank takes the momenta and errors of the one rank");
    expect(await notesOn(["a", "b", "c"])).toContain(
      "each rank takes the mean of the 2 ranks' own momenta and errors, and the errors that belong to parts of the model are shared out anew",
    );
    expect(await notesOn(["a"])).toContain(
      "the rank takes the mean of the 3 ranks' own momenta and errors, and adds the errors that belonged to parts of the model",
    );
  });

  it("keeps its shards on as many ranks, and where there would be none", async () => {
    const sharded = () =>
      readRecipe("gpt-small", [
        "model.preset=nano",
        "model.layers=1",
        `data.path=${JSON.stringify(join(folder, "text"))}`,
        "optimizer.name=dion",
        "optimizer.groups=[{ roles: [embedding, head, norm, vector], name: adamw }]",
        "parallel.weight=2",
      ]);
    await notesOn(["a", "b"], [], sharded);
    await expect(notesOn(["a", "b"], ["parallel.weight=1"], sharded)).rejects.toThrow(
      "parallel.weight: 1, and the save has 2: as many ranks keep their shards; take 2 again, or start a new run",
    );
    await expect(notesOn(["a"], ["parallel.weight=1"])).rejects.toThrow(
      "parallel.weight: 1, and the save has 2: a matrix is not cut into shards, and shards are not put together",
    );
  });

  it.each([
    "config.json",
    "model.safetensors",
    "state-rank-0.safetensors",
    "state-rank-1.safetensors",
    "manifest.json",
  ])("is refused on all ranks before anything is loaded when a bit of %s has flipped", async (name) => {
    const run = disk("run");
    await save(2, [run, run]);
    const path = join(run, "step-2", name);
    const content = readFileSync(path);
    content[content.length - 9]! ^= 1;
    writeFileSync(path, content);
    const differences: number[] = [];
    const errors = await onRanks([run, run], async ({ group, arena, parts, place }) => {
      const before = await arena.parameters.toTypedArray();
      try {
        const { manifest } = await findSave(run, group);
        const reader = await gatherSave(run, manifest, place.lock, group);
        await restoreSave(run, manifest, parts, { reader, group });
      } catch (error) {
        expect(error).toBeInstanceOf(CheckpointError);
        differences.push(
          Buffer.compare(Buffer.from(before.buffer), Buffer.from((await arena.parameters.toTypedArray()).buffer)),
        );
        return (error as Error).message;
      }
      return "accepted";
    });
    expect(errors[0]).toMatch(new RegExp(`${name.replace(".", "\\.")} (is not what was saved|was changed)`));
    expect(errors[1]).toBe(errors[0]);
    expect(differences).toEqual([0, 0]);
  });

  it("is refused in one line when a key of its manifest is absent or is something else", async () => {
    const run = disk("run");
    await save(2, [run]);
    const { manifest } = readSave(run);
    const file = { name: "config.json", bytes: 1, crc32: "0", rank: 0, host: "a" };
    const changes: [object, string][] = [
      [{ step: "2" }, "step is not an integer ≥ 0"],
      [{ step: undefined }, "step is not an integer ≥ 0"],
      [{ ranks: 0 }, "ranks is not an integer ≥ 1"],
      [{ ranks: [1] }, "ranks is not an integer ≥ 1"],
      [{ recipe: null }, "recipe is not an object"],
      [{ data: [] }, "data is not an object"],
      [{ sums: 7 }, "sums is not an object"],
      [{ ranks: 1e9 }, "lists no state-rank-1.safetensors, though ranks is 1000000000"],
      [{ files: [{ ...file, rank: 1 }] }, "files do not each have a rank below ranks"],
      [{ files: [{ ...file, host: 1 }] }, "files do not each have a rank below ranks"],
    ];
    for (const [change, message] of changes) {
      await writeManifest(join(run, "step-2"), { ...manifest, ...change }); // with a true checksum
      expect(() => readSave(run)).toThrow(
        new RegExp(`^[^\\n]*step-2.manifest\\.json:? ${message}[^\\n]*; use another save\\.$`),
      );
    }
    await expect(resume([run])).rejects.toThrow("files do not each have a rank");
  });

  it("is refused when the files of two ranks were swapped", async () => {
    const run = disk("run");
    await save(2, [run, run]);
    const state = (rank: number | string) => join(run, "step-2", `state-rank-${rank}.safetensors`);
    for (const [from, to] of [
      [0, "x"],
      [1, 0],
      ["x", 1],
    ] as const)
      renameSync(state(from), state(to));
    await expect(resume([run, run])).rejects.toThrow(/state-rank-0\.safetensors has the content of state-rank-1/);
  });

  it("that is damaged is passed over by --resume auto, which says so, and not by --resume with its path", async () => {
    const run = disk("run");
    for (const step of [2, 3, 4]) {
      const own = disk(`run-${step}`);
      await save(step, [own, own]);
      renameSync(saveFolder(own, step), saveFolder(run, step));
    }
    const state = join(run, "step-3", "state-rank-1.safetensors");
    const content = readFileSync(state);
    writeFileSync(state, content.fill(7, content.length - 20));
    const manifest = join(run, "step-4", "manifest.json");
    writeFileSync(manifest, "{}");
    const begun = (resume: string) =>
      onRanks([disk("a"), disk("b")], async ({ group }) => {
        await using opened = await openRun(undefined, group, { resume, out: run, recipe: undefined, overrides: [] });
        return [opened.step, opened.notes];
      });
    const notes = [
      expect.stringMatching(/^the save of step 4 is passed over: \S*step-4.manifest\.json .*/),
      expect.stringMatching(/^the save of step 3 is passed over: \S*state-rank-1\.safetensors is not what was saved/),
    ];
    expect(await begun("auto")).toEqual([
      [2, notes],
      [2, notes],
    ]);
    await expect(begun(join(run, "step-3"))).rejects.toThrow(/state-rank-1\.safetensors is not what was saved/);
    for (const step of [2, 3]) writeFileSync(join(run, `step-${step}`, "manifest.json"), "{}");
    await expect(begun("auto")).rejects.toThrow(/step-4.manifest\.json/);
  });

  it("is found by --resume auto in the folder of rank 0, where another rank was started elsewhere", async () => {
    const run = disk("run");
    await save(2, [run, run]);
    const found = await onRanks([disk("a"), disk("b")], async ({ group }) => {
      const out = group.rank === 0 ? run : disk("elsewhere");
      const given = { resume: "auto", out, recipe: undefined, overrides: [] };
      await using opened = await openRun(undefined, group, given);
      return [opened.folder, opened.step];
    });
    expect(found).toEqual([
      [run, 2],
      [run, 2],
    ]);
  });

  it("that is whole but of another version is not passed over by --resume auto, which would write over it", async () => {
    const run = disk("run");
    for (const step of [2, 3]) {
      const own = disk(`run-${step}`);
      await save(step, [own, own]);
      renameSync(saveFolder(own, step), saveFolder(run, step));
    }
    const manifest = join(run, "step-3", "manifest.json");
    writeFileSync(manifest, readFileSync(manifest, "utf8").replace(/"version":\d+/, '"version":99'));
    const begun = onRanks([disk("a"), disk("b")], async ({ group }) => {
      await using opened = await openRun(undefined, group, {
        resume: "auto",
        out: run,
        recipe: undefined,
        overrides: [],
      });
      return opened.step;
    });
    await expect(begun).rejects.toThrow(/step-3.manifest\.json is of version 99 of saves/);
  });

  it("leaves the two before it that it went on from, and none of steps that are taken again", async () => {
    const run = disk("run");
    await onRanks([run], async (rank) => {
      for (const step of [2, 4, 6]) {
        await arrive(step, rank);
        await writeSave(step, rank.place, rank.parts, rank.group);
      }
    });
    expect(
      readdirSync(run)
        .filter((name) => name !== "lock.json")
        .sort(),
    ).toEqual(["step-4", "step-6"]);
    await onRanks([run], async (rank) => {
      rank.place.saves.add(4); // goes on from the save after step 4
      await arrive(7, rank);
      await writeSave(7, rank.place, rank.parts, rank.group);
    });
    expect(readdirSync(run).sort()).toEqual(["step-4", "step-7"]);
  });

  /** Saves after the steps of these validation losses, 2 steps apart; `lost`: those that cannot be written. */
  const saveValidated = (disks: readonly string[], losses: readonly number[], lost: readonly number[] = []) =>
    onRanks(
      disks,
      async ({ group, parts, place }) => {
        const best = new BestSoFar({});
        for (const [i, loss] of losses.entries()) {
          const step = 2 * (i + 1);
          best.saw(step, loss);
          const inTheWay = join(place.run, `.step-${step}.tmp`);
          if (lost.includes(step)) writeFileSync(inTheWay, "");
          const copy = await copyState(step, place.recipe, parts, group.rank);
          const written = writeCopy({ ...copy, validated: best.validated }, place, group, onThisThread);
          await (lost.includes(step) ? expect(written).rejects.toThrow(inTheWay) : written);
        }
      },
      () => ({ ...recipe(), save: { keep: 1, best: true } }),
    );

  it("that is the best one stays where a better one could not be written", async () => {
    const run = disk("run");
    await saveValidated([run], [3, 2, 3.5, 3.25], [4]);
    expect(savesIn(run)).toEqual([2, 8]);
    expect(readSave(run).manifest.bestSave).toEqual({ step: 2, loss: 3 });
    expect(readSave(join(run, "best")).manifest.step).toBe(2);
  });

  it("that is the best one is found on any rank's disk, and a run may be named best", async () => {
    const [a, b, c] = [disk("a"), disk("b"), disk("c")] as const;
    await saveValidated([a, b], [3, 4, 5]);
    const found = (runs: readonly string[], name = "") =>
      onRanks(runs, async ({ group, place }) => {
        const { run, manifest } = await findSave(join(place.run, name), group);
        return [run, manifest.step];
      });
    expect(await found([c, a, b], "best")).toEqual([
      [c, 2],
      [a, 2],
      [b, 2],
    ]);
    rmSync(saveFolder(a, 2), { recursive: true });
    await expect(found([c, a], "best")).rejects.toThrow(/the best save of \S+, after 2 steps, is not there any more/);
    const named = disk("best");
    await saveValidated([named], [3]);
    const absent = join(folder, "nowhere", "best");
    const groups = loopback(2);
    const both = groups.map((group) => findSave(group.rank === 1 ? named : absent, group));
    expect((await Promise.all(both)).map(({ run, manifest }) => [run, manifest.step])).toEqual([
      [absent, 2],
      [named, 2],
    ]);
    await Promise.all(groups.map((group) => group.close()));
  });

  it("with a value that is not finite is not made, and the one before stays", async () => {
    const run = disk("run");
    await save(2, [run, run]);
    const failures = await onRanks([run, run], async (rank) => {
      const { tensors } = await rank.parts.optimizer.state();
      if (rank.group.rank === 1) noGrad(() => [...tensors.values()][0]!.fill_(Number.NaN));
      return writeSave(4, rank.place, rank.parts, rank.group).catch((error: unknown) => error);
    });
    for (const failure of failures) {
      expect(failure).toBeInstanceOf(NotFiniteError);
      expect((failure as Error).message).toMatch(/^m\.\S+ of rank 1's state has values that are not finite/);
    }
    expect(readdirSync(run)).toEqual(["step-2"]);
  });

  it("while a rank has refused a local step is not made, and the one before stays", async () => {
    const run = disk("run");
    const local = () => ({ ...recipe(), local: readRecipe("gpt-small-local-muon", []).local });
    const take = ({ arena, parts }: OnRank, gradient: number) => {
      noGrad(() => arena.gradients.fill_(gradient));
      return parts.optimizer.step({ lr: 1e-3 });
    };
    const failures = await onRanks(
      [run, run],
      async (rank) => {
        await take(rank, 1);
        await writeSave(1, rank.place, rank.parts, rank.group);
        await take(rank, rank.group.rank === 1 ? Number.NaN : 1);
        return writeSave(2, rank.place, rank.parts, rank.group).catch((error: unknown) => error);
      },
      local,
    );
    for (const failure of failures) {
      expect(failure).toBeInstanceOf(NotFiniteError);
      expect((failure as Error).message).toBe(
        "rank 1 has refused a step: the gradient is not finite, and the saves before stay",
      );
    }
    expect(readdirSync(run)).toEqual(["step-1"]);
    expect(readSave(run).manifest.rounds).toEqual([0]);
  });

  it("that a disk does not take leaves nothing, names the path on every rank, and succeeds later", async () => {
    const run = disk("run");
    writeFileSync(join(run, ".step-4.tmp"), ""); // in the way
    await onRanks([run, run], async (rank) => {
      await expect(writeSave(4, rank.place, rank.parts, rank.group)).rejects.toThrow(
        `Cannot create the folder ${run}/.step-4.tmp: a part of the path is a file`,
      );
      await writeSave(4, rank.place, rank.parts, rank.group); // what was in the way is gone with the rest
    });
    expect(readdirSync(run)).toEqual(["step-4"]);
  });

  it("is not begun where its disk has too little space", async () => {
    const run = disk("run");
    await onRanks([run], async ({ place, parts, group }) => {
      await checkSpace(place, parts, group);
      const greedy = { ...place, recipe: { ...place.recipe, save: { keep: 1e9, best: false } } };
      await expect(checkSpace(greedy, parts, group)).rejects.toThrow(
        /^the disk of .* has \S+ [kMGT]?B for saves, and they will take/,
      );
    });
  });
});

describe("a save that is written beside the steps", () => {
  const args = (out: string) => ({ out, recipe: undefined, resume: undefined, initFrom: undefined, overrides: [] });
  const firstParameter = async (run: string, step: number) => {
    const tensors = await readSafetensors(join(saveFolder(run, step), "model.safetensors"));
    return Number([...tensors.values()][0]!.data[0]);
  };

  it.skipIf(process.platform !== "linux")("has a thread of lower priority (on Linux)", async () => {
    const niceness = () =>
      readdirSync("/proc/self/task").map((id) => {
        const [, after] = readFileSync(`/proc/self/task/${id}/stat`, "utf8").split(/\) (?!.*\))/s); // behind the name
        return Number(after!.split(" ")[16]); // proc(5): field 19
      });
    await using writer = new ThreadWriter();
    await writer.write(disk("files"), { rank: 1, state: [], metadata: {} });
    expect(niceness()).toContain(19);
    expect(getPriority()).toBeLessThan(19);
  });

  it("is written in parts of a mebibyte with a pause after each, and is whole at once when somebody waits", async () => {
    const big = new Float32Array(3 * (1 << 18) + 5).map((_, i) => i % 100);
    const filesOf = (data: Float32Array): SaveFiles => ({
      rank: 1,
      state: [["x", { dtype: "f32", shape: [data.length], data }]],
      metadata: {},
    });
    let pauses = 0;
    const here = await writeFiles(disk("here"), filesOf(big), () => pauses++);
    expect(pauses).toBe(4);
    await using writer = new ThreadWriter();
    for (const _ of [1, 2]) {
      const written = writer.write(disk("thread"), filesOf(big.slice()));
      writer.hurry();
      expect(await written).toEqual(here);
    }
    const bad = big.slice();
    bad[bad.length - 1] = Number.NaN;
    await expect(writer.write(disk("bad"), filesOf(bad))).rejects.toThrow(
      "x of rank 1's state has values that are not finite",
    );
    expect(readdirSync(disk("bad"))).toEqual([]);
  });

  it("has the values of its step, whatever the steps after it change; the next one waits for it", async () => {
    const out = join(folder, "run");
    await onRanks([disk("a"), disk("b")], async (rank) => {
      await using run = await openRun(recipe(), rank.group, args(out));
      await run.begin(rank.parts);
      const failures: unknown[] = [];
      for (const step of [1, 2, 3]) {
        await arrive(step, rank);
        await run.beginSave(step, (failure) => failures.push(failure));
        noGrad(() => rank.arena.parameters.fill_(-1));
      }
      expect(await run.save(3)).toBeUndefined(); // it is under way
      expect(failures).toEqual([]);
      await rank.group.barrier();
      expect(savesIn(out)).toEqual([2, 3]);
    });
    expect([await firstParameter(out, 2), await firstParameter(out, 3)]).toEqual([2, 3]);
    expect(files(out, 3)).toEqual([
      "config.json",
      "manifest.json",
      "model.safetensors",
      "state-rank-0.safetensors",
      "state-rank-1.safetensors",
    ]);
  });

  it("reports on all ranks why it failed, and the next one succeeds; the run's end waits", async () => {
    const out = join(folder, "run");
    const reported = await onRanks([disk("a"), disk("b")], async (rank) => {
      await using run = await openRun(recipe(), rank.group, args(out));
      await run.begin(rank.parts);
      const reasons: string[] = [];
      const failed = ({ why, lasts }: SaveFailure) => reasons.push(`${lasts ? "lasts" : "passes"}: ${why}`);
      if (rank.group.rank === 0) writeFileSync(join(out, ".step-1.tmp"), ""); // in the way
      await rank.group.barrier();
      await run.beginSave(1, failed);
      await run.beginSave(2, failed);
      if (rank.group.rank === 1) noGrad(() => rank.arena.parameters.fill_(Number.NaN)); // rank 0 saves the model
      const { tensors } = await rank.parts.optimizer.state();
      if (rank.group.rank === 1) noGrad(() => [...tensors.values()][0]!.fill_(Number.NaN));
      await run.beginSave(3, failed);
      return reasons;
    });
    expect(savesIn(out)).toEqual([2]);
    expect(reported[1]).toEqual(reported[0]);
    expect(reported[0]).toEqual([
      expect.stringMatching(/^passes: Cannot create the folder .*\.step-1\.tmp: a part of the path is a file/),
      expect.stringMatching(/^lasts: m\.\S+ of rank 1's state has values that are not finite/),
    ]);
  });

  it("is written by its thread with the bytes that this thread would write, from memory that is filled again", async () => {
    const [one, other] = [disk("one"), disk("other")];
    await onRanks([one], async (rank) => {
      await using writer = new ThreadWriter();
      const memory: (ArrayBufferLike | undefined)[] = [];
      for (const step of [1, 2]) {
        await arrive(step, rank);
        const copy = await copyState(step, recipe(), rank.parts, 0, writer.spare);
        const plain = await copyState(step, recipe(), rank.parts, 0);
        const written = await writer.write(saveFolder(one, step), copy.files);
        expect(written).toEqual(await writeFiles(saveFolder(other, step), plain.files));
        expect(copy.files.state[0]![1].data.length).toBe(0); // it belonged to the thread
        memory.push(writer.spare!.state[0]![1].data.buffer);
        for (const { name } of written)
          expect(readFileSync(join(saveFolder(one, step), name))).toEqual(
            readFileSync(join(saveFolder(other, step), name)),
          );
      }
      expect(memory[0]!.byteLength).toBe(0); // given back to the thread with the second save's values
      expect(memory[1]!.byteLength).toBeGreaterThan(0);
    });
  });

  it("leaves the save before or itself, complete, wherever the process ends", async () => {
    const before = disk("before");
    await onRanks([before], async (rank) => {
      await arrive(1, rank);
      await writeSave(1, rank.place, rank.parts, rank.group);
      await arrive(2, rank);
      const copy = await copyState(2, rank.place.recipe, rank.parts, 0);
      const seen = new Set<number>();
      for (let last = 0, ended = true; ended; last++) {
        const run = join(folder, `ended-${last}`);
        cpSync(before, run, { recursive: true });
        const place = {
          ...rank.place,
          run,
          saves: new Set([1]),
          recipe: { ...recipe(), save: { every: 1, keep: 1, best: false } },
        };
        ended = await endAtOperation(last, () => writeCopy(copy, place, rank.group, onThisThread));
        removeLeftovers(run);
        const { manifest } = await findSave(run, rank.group);
        await gatherSave(run, manifest, rank.place.lock, rank.group); // compares every checksum
        expect(await firstParameter(run, manifest.step)).toBe(manifest.step);
        seen.add(manifest.step);
        expect(readdirSync(run).filter((name) => name.endsWith(".tmp"))).toEqual([]);
      }
      expect([...seen]).toEqual([1, 2]);
    });
  });
});

describe("what a killed process leaves", () => {
  it("is removed: unfinished saves and temporary files, and nothing else", async () => {
    const run = disk("run");
    await save(2, [run]);
    const whole = readdirSync(run, { recursive: true });
    mkdirSync(join(run, ".step-4.tmp"));
    for (const name of [".step-4.tmp/config.json", ".recipe.json.7-00.tmp", "step-2/.config.json.7-00.tmp"])
      writeFileSync(join(run, name), "");
    removeLeftovers(run);
    expect(readdirSync(run, { recursive: true })).toEqual(whole);
  });
});

describe("a saved model", () => {
  it("is not made where its config does not describe the weights, however large that model would be", async () => {
    const run = disk("run");
    await save(2, [run]);
    const model = disk("model");
    for (const name of ["config.json", "model.safetensors"]) renameSync(join(run, "step-2", name), join(model, name));
    expect((await loadModelOf(model)).parameterCount()).toBeGreaterThan(1000);
    const config = JSON.parse(readFileSync(join(model, "config.json"), "utf8")) as object;
    const of = (changed: object) => {
      writeFileSync(join(model, "config.json"), JSON.stringify({ ...config, ...changed }));
      return expect(loadModelOf(model)).rejects;
    };
    const sizes = "config\\.json describes a model of \\d+ parameters, and model\\.safetensors has \\d+:";
    await of({ layers: 10_000 }).toThrow(new RegExp(`${sizes} they belong to different models`));
    await of({ layers: 12 }).toThrow(new RegExp(`${sizes} missing blocks\\.\\d\\.`));
  });
});
