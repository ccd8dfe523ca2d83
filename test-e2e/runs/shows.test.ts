import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { terseIn, tinyTraining, trainingFolder, until } from "./terse.ts";

const { folder, text } = trainingFolder("shows");

it("a run gives the terminal no command of its folder's name, on any way to it", async () => {
  const name = "a\u001b[2J\u0007b\u202ec\n\u009bd";
  for (const more of [[], ["--log-dir", join(folder, "logs-of-names")], ["--nproc-per-node=1"]]) {
    const out = join(folder, `${name}${more.length}${more[0] ?? ""}`);
    const {
      code,
      out: printed,
      err,
    } = await terseIn(folder, [...tinyTraining(text), "--steps=2", "--out", out, ...more]);
    expect([code, err]).toEqual([0, ""]);
    expect(printed).toMatch(/^run .*a·\[2J·b·c··d/m);
    expect(printed).toMatch(/^resume: \.\/terse train --resume \$'(\\x[0-9a-f]{2})+'/m);
    expect(printed).not.toMatch(/(?!\n)[\p{Cc}\p{Bidi_Control}]/u);
  }
  const { code, err } = await terseIn(folder, [...tinyTraining(`${text}${name}`), "--steps=2"]);
  expect(code).toBe(1);
  expect(err).toContain("a·[2J·b·c");
  expect(err).not.toMatch(/(?!\n)[\p{Cc}\p{Bidi_Control}]/u);
});

it("a training shows itself in a trace, to TensorBoard, to Prometheus and in a browser at once", async () => {
  const run = join(folder, "run");
  const logs = join(folder, "logs");
  const shows = ["--trace", "--tensorboard", "--prometheus=0", "--dashboard=0.0.0.0:0", "--log-dir", logs];
  let printed = "";
  let pid = 0;
  const args = [...tinyTraining(text), "--steps=1000000", "--logEvery=20", "--out", run, ...shows];
  const ended = terseIn(folder, args, (line, launcher) => {
    printed += `${line}\n`;
    pid = launcher;
  });
  try {
    const said = (words: RegExp) => words.exec(printed)?.[1];
    const [prometheus, page] = [/^numbers for Prometheus at (http\S+)$/m, /^page (http\S+#token=\S+)$/m];
    const [traced, logged] = [/^trace (\S+\.json): /m, /^step: (20|21)\//m];
    await until(() => [prometheus, page, traced, logged].every(said));

    const numbers = await (await fetch(said(prometheus)!)).text();
    expect(numbers).toMatch(/^terse_train_loss [\d.]+$/m);
    expect(numbers).toMatch(/^terse_ranks_compute_seconds\{rank="1"\} [\d.e-]+$/m);

    const { port, hash } = new URL(said(page)!);
    const token = hash.slice("#token=".length);
    const of = (authorization?: string) =>
      fetch(`http://127.0.0.1:${port}/`, authorization === undefined ? {} : { headers: { authorization } });
    expect((await of()).status).toBe(401);
    const answer = await of(`Bearer ${token}`);
    expect(answer.status).toBe(200);
    const log = readFileSync(join(logs, "attempt-0", "rank-0.log"), "utf8"); // others may read it
    expect(log).toMatch(/^page http:\S+:\d+\/$/m);
    expect(log).not.toContain(token);
    expect(answer.headers.get("content-type")).toContain("text/html");
    expect(await answer.text()).toContain("<script");

    expect(said(traced)).toBe(join(run, "trace.json"));
    const { traceEvents } = JSON.parse(readFileSync(said(traced)!, "utf8")) as {
      traceEvents: { name: string; ph: string; pid: number }[];
    };
    for (const rank of [0, 1]) {
      const names = traceEvents.filter(({ ph, pid }) => ph === "X" && pid === rank).map(({ name }) => name);
      expect(names.filter((name) => /^step \d+$/.test(name))).toHaveLength(20);
      for (const part of ["data", "forward", "backward", "encode", "wire", "decode"]) expect(names).toContain(part);
    }
  } finally {
    if (pid > 0) process.kill(pid, "SIGTERM");
  }
  const { code, err } = await ended;
  expect([code, err]).toEqual([143, expect.stringMatching(/^(resume: .*\n)?$/)]);

  const [events, ...others] = readdirSync(join(run, "tensorboard"));
  expect(others).toEqual([]);
  const file = readFileSync(join(run, "tensorboard", events!));
  const length = Number(file.readBigUInt64LE(0)); // of a record's data, which follows it and its checksum
  expect(file.subarray(12, 12 + length).toString("latin1")).toContain("brain.Event:2");
  expect(file.includes("train/loss")).toBe(true);
});
