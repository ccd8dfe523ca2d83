/**
 * The launcher of `./terse train`: signals that it gets, and ranks that fail at the moments at which few things are
 * ready.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { freePort } from "../ranks/start-ranks.ts";
import { lastLine, type Outcome, rankOf, terseIn, tinyTraining, trainingFolder, until } from "./terse.ts";

const { folder, text } = trainingFolder("launcher");
const steps = 12; // when the last one ends, the save of step 3 is complete, because later ones have waited for it
const train = (name: string, ...more: string[]) => [
  ...tinyTraining(text),
  ...["--sample.bytes=0", "--save.every=3", "--nproc-per-node=2", `--steps=${steps}`, `--out=${name}`],
  ...more,
];
const endless = "--steps=1000000";
const weights = (run: string) => readFileSync(join(folder, run, `step-${steps}`, "model.safetensors"));

/** Acts once, at the first line of output that matches. */
function at(line: RegExp, act: (launcher: number) => unknown): (line: string, launcher: number) => void {
  let done = false;
  return (each, launcher) => {
    if (done || !line.test(each)) return;
    done = true;
    void act(launcher);
  };
}
const signal = (launcher: number, rank: number, name: NodeJS.Signals) => process.kill(rankOf(launcher, rank)!, name);

describe.concurrent("the launcher", () => {
  beforeAll(async () => {
    const { code, err } = await terseIn(folder, train("undisturbed"));
    expect(code, err).toBe(0);
  });

  it("prints the command that goes on with as many machines", async () => {
    const endpoint = `127.0.0.1:${await freePort()}`;
    const place = (machine: number, ranks: number) => [
      ...["--nnodes", "2", "--node-rank", `${machine}`],
      ...["--rdzv-endpoint", endpoint, "--nproc-per-node", `${ranks}`],
    ];
    const onBoth = (...args: readonly string[]) =>
      Promise.all(
        [1, 2].map((ranks, machine) =>
          terseIn(folder, [...args, ...place(machine, ranks)], () => {}, { TERSE_TOKEN: "t" }),
        ),
      );
    const [first, second] = (await onBoth(...train("machines"))) as [Outcome, Outcome];
    expect([first.code, second.code], first.err).toEqual([0, 0]);
    expect(lastLine(first.out)).toBe(
      `resume: ./terse train --resume machines ${place(0, 1).join(" ")} --steps=${2 * steps}`,
    );
    expect(second.out).not.toContain("resume:");
  });

  it("kills the ranks that do not end after another one has failed", async () => {
    const act = at(/^step: 3\//, (launcher) => {
      signal(launcher, 0, "SIGSTOP");
      signal(launcher, 1, "SIGKILL");
    });
    const { code, err } = await terseIn(folder, train("stopped", endless), act);
    expect(code).toBe(137);
    expect(err).toMatch(/^error: rank 1 on \S+ was ended by SIGKILL and all others were stopped\./m);
  });

  it("ends with 129 after SIGHUP, when the ranks have saved", async () => {
    const act = at(/^step: 4\//, (launcher) => process.kill(launcher, "SIGHUP"));
    const { code, out, err } = await terseIn(folder, train("hang-up", endless), act);
    expect(code, err).toBe(129);
    const [, saved] = /^SIGHUP: ends after (\d+) steps$/m.exec(out)!;
    expect(readFileSync(join(folder, "hang-up", `step-${saved}`, "manifest.json"), "utf8")).toContain('"ranks"');
  });

  it("gives an evaluation up after SIGTERM", async () => {
    const long = join(folder, "long.txt");
    writeFileSync(long, "the quick brown fox jumps over the lazy dog. ".repeat(400_000));
    const args = [...tinyTraining(long), "--evaluate.windows=all", "--nproc-per-node=2", "--out=evaluated"];
    const act = at(/^run /, async (launcher) => {
      await new Promise((resolve) => setTimeout(resolve, 2000)); // the evaluation takes much longer
      process.kill(launcher, "SIGTERM");
    });
    const { code, out, err } = await terseIn(folder, args, act);
    expect(code, err).toBe(143);
    expect(out).toMatch(/^SIGTERM: ends after 0 steps$/m);
    expect(out).not.toContain("validation_loss");
  });

  it("takes signals that come together for one, as of a terminal that is closed", async () => {
    const act = at(/^step: 4\//, (launcher) => {
      for (let i = 0; i < 2; i++) process.kill(launcher, "SIGHUP");
    });
    const { code, out, err } = await terseIn(folder, train("closed", endless), act);
    expect(code, err).toBe(129);
    expect(out).toMatch(/^SIGHUP: ends after \d+ steps$/m);
  });

  it("ends without an error at a signal before the ranks have begun", async () => {
    const act = at(/^/, async (launcher) => {
      await until(() => rankOf(launcher, 1) !== undefined);
      process.kill(launcher, "SIGINT");
    });
    const { code, signal, err } = await terseIn(folder, train("at-once", "--max-restarts=1"), act);
    expect({ code, signal, err }).toEqual({ code: 130, signal: null, err: expect.stringMatching(/^SIGINT: .*\n$/) });
  });

  it("goes on after SIGHUP where nohup ignores it", async () => {
    const act = at(/^step: 4\//, (launcher) => {
      for (const rank of [0, 1]) signal(launcher, rank, "SIGHUP");
      process.kill(launcher, "SIGHUP");
    });
    const { code, out, err } = await terseIn(folder, train("nohup"), act, { TERSE_IGNORES_HANGUP: "1" });
    expect(code, err).toBe(0);
    expect(out).not.toContain("SIGHUP");
    expect(weights("nohup").equals(weights("undisturbed"))).toBe(true);
  });

  it("kills the ranks at a second signal, with 137", async () => {
    const act = at(/^step: 4\//, async (launcher) => {
      signal(launcher, 1, "SIGSTOP"); // so that the other one waits, and the run is not saved
      process.kill(launcher, "SIGTERM");
      await new Promise((resolve) => setTimeout(resolve, 2000)); // long enough on a busy machine, too
      process.kill(launcher, "SIGINT");
    });
    const { code, err } = await terseIn(folder, train("twice", endless, "--max-restarts=3"), act);
    expect(code, err).toBe(137);
    expect(err).toMatch(/^error: ended by a second SIGINT, before the run was saved/m);
    expect(err).not.toContain("restart");
  });

  it("starts the ranks again when one is killed before the first line", async () => {
    const act = at(/^/, async (launcher) => {
      await until(() => rankOf(launcher, 1) !== undefined);
      signal(launcher, 1, "SIGKILL");
    });
    const { code, err } = await terseIn(folder, train("early", "--max-restarts=1"), act);
    expect(code, err).toBe(0);
    expect(err).toMatch(/^restart 1 of 1$/m);
    expect(weights("early").equals(weights("undisturbed"))).toBe(true);
  });

  it("starts the ranks again when one is killed after the last step", async () => {
    const act = at(new RegExp(`^step: ${steps}/`), (launcher) => signal(launcher, 1, "SIGKILL"));
    const { code, err } = await terseIn(folder, train("late", "--max-restarts=1"), act);
    expect(code, err).toBe(0);
    expect(err).toMatch(/^restart 1 of 1, from the last save in .*late$/m);
    expect(weights("late").equals(weights("undisturbed"))).toBe(true);
  });
});
