import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { get } from "node:http";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text as streamText } from "node:stream/consumers";
import { crc32c } from "@terse/codecs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Line } from "./numbers-of.ts";
import { openMonitors } from "./open-monitors.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-monitors-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const lines: readonly Line[] = [
  { step: 0, "val/loss": 5.5 },
  { step: 0, "train/loss": 5.25, "ranks/compute_seconds": [0.5, 0.75], total_bytes: 1000, emulated_link: "100 Mbit/s" },
  { step: 0, "layers/names": ["a.weight", 'b "x\\y'], "layers/ties": [0.375, null], "layers/changes": [1, 2] },
  { step: 300, "train/loss": 2.125, "ranks/compute_seconds": [0.25, 0.5], total_bytes: 301_000, grad_norm: Number.NaN },
];

/** A run that only has what monitors use. */
const runAt = (step: number) => ({ folder, step, recipe: {}, reader: undefined as ((line: Line) => void) | undefined });

const nothing = () => {};

async function monitored(
  args: Parameters<typeof openMonitors>[0],
  step = 0,
): Promise<{ notes: string[]; text?: string }> {
  const [run, notes] = [runAt(step), [] as string[]];
  using _ = await openMonitors(args, run as never, (text) => notes.push(text));
  for (const line of lines) run.reader!(line);
  const url = /http\S+/.exec(notes.join("\n"))?.[0];
  return { notes, ...(url !== undefined && { text: await (await fetch(url)).text() }) };
}

describe("TensorBoard's events", () => {
  const file = () => join(folder, "tensorboard", readdirSync(join(folder, "tensorboard"))[0]!);

  it("are records whose lengths and contents have the checksums of the format", async () => {
    await monitored({ tensorboard: true });
    const bytes = readFileSync(file());
    expect(crc32c(new Uint8Array(32))).toBe(0x8a9136aa); // RFC 3720, B.4: 32 bytes of zeros
    const unmasked = (at: number) => {
      const rotated = (bytes.readUInt32LE(at) - 0xa282ead8) >>> 0;
      return ((rotated << 15) | (rotated >>> 17)) >>> 0;
    };
    let [at, records] = [0, 0];
    for (; at < bytes.length; records++) {
      const length = Number(bytes.readBigUInt64LE(at));
      expect(unmasked(at + 8)).toBe(crc32c(bytes.subarray(at, at + 8)));
      expect(unmasked(at + 12 + length)).toBe(crc32c(bytes.subarray(at + 12, at + 12 + length)));
      at += 16 + length;
    }
    expect(at).toBe(bytes.length);
    expect(records).toBe(1 + lines.length); // the first one is the version
  });

  const python = process.env["TERSE_PYTHON"] ?? "python3";
  const hasTensorboard = spawnSync(python, ["-c", "import tensorboard"]).status === 0;
  it.skipIf(!hasTensorboard)(
    `are read back by TensorBoard, and those that a resumed run takes again do not count${hasTensorboard ? "" : " (skipped: the tests' Python has no tensorboard; pip install tensorboard)"}`,
    async () => {
      await monitored({ tensorboard: true });
      const program = `
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1]).Reload()
print(json.dumps({tag: [[e.step, e.value] for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}))`;
      const read = () => {
        const { stdout, stderr } = spawnSync(python, ["-c", program, join(folder, "tensorboard")], {
          encoding: "utf8",
        });
        expect(stdout, stderr).not.toBe("");
        return JSON.parse(stdout) as Record<string, [number, number][]>;
      };
      expect(read()).toEqual({
        "val/loss": [[0, 5.5]],
        "train/loss": [
          [0, 5.25],
          [300, 2.125],
        ],
        "ranks/compute_seconds/0": [
          [0, 0.5],
          [300, 0.25],
        ],
        "ranks/compute_seconds/1": [
          [0, 0.75],
          [300, 0.5],
        ],
        "layers/ties/a.weight": [[0, 0.375]],
        "layers/changes/a.weight": [[0, 1]],
        'layers/changes/b "x\\y': [[0, 2]],
        total_bytes: [
          [0, 1000],
          [300, 301_000],
        ],
      });
      await new Promise((done) => setTimeout(done, 1100)); // a later file has a later second in its name
      using _ = await openMonitors({ tensorboard: true }, runAt(200) as never, nothing);
      expect(read()["train/loss"]).toEqual([[0, 5.25]]);
    },
  );
});

describe("numbers for Prometheus", () => {
  it("are the last ones, in its text format, on this machine only", async () => {
    const { notes, text } = await monitored({ prometheus: { host: "127.0.0.1", port: 0 } });
    expect(notes[0]).toMatch(/http:\/\/127\.0\.0\.1:\d+\/metrics$/);
    // https://prometheus.io/docs/instrumenting/exposition_formats/: a comment of the type, then samples of that name
    const name = "[a-zA-Z_:][a-zA-Z0-9_:]*";
    expect(text).toMatch(
      new RegExp(`^(# TYPE ${name} (counter|gauge)\\n(${name}(\\{[a-z]+="([^"\\\\]|\\\\.)*"\\})? \\S+\\n)+)+$`),
    );
    expect(text).toContain("# TYPE terse_train_loss gauge\nterse_train_loss 2.125\n");
    expect(text).toContain('terse_ranks_compute_seconds{rank="1"} 0.5\n');
    expect(text).toContain('# TYPE terse_layers_ties gauge\nterse_layers_ties{layer="a.weight"} 0.375\n# TYPE');
    expect(text).toContain('terse_layers_changes{layer="b \\"x\\\\y"} 2\n');
    expect(text).toContain("# TYPE terse_sent_bytes_total counter\nterse_sent_bytes_total 301000\n");
    expect(text).toContain("terse_val_loss 5.5\n");
    expect(text).not.toContain("NaN");
  });

  it("answer only GET /metrics, with the type of the format", async () => {
    const notes: string[] = [];
    using _ = await openMonitors({ prometheus: { host: "127.0.0.1", port: 0 } }, runAt(0) as never, (text) =>
      notes.push(text),
    );
    const url = /http\S+/.exec(notes[0]!)![0];
    expect((await fetch(url)).headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect((await fetch(url.replace("/metrics", "/"))).status).toBe(404);
    expect((await fetch(url, { method: "POST" })).status).toBe(405);
  });

  it("are refused under another machine's name, as a web page could have one that leads here", async () => {
    const notes: string[] = [];
    using _ = await openMonitors({ prometheus: { host: "127.0.0.1", port: 0 } }, runAt(0) as never, (text) =>
      notes.push(text),
    );
    const { port } = new URL(/http\S+/.exec(notes[0]!)![0]);
    const status = async (host: string) => {
      const [response] = await once(get({ host: "127.0.0.1", port, path: "/metrics", headers: { host } }), "response");
      response.resume();
      return response.statusCode as number;
    };
    for (const host of [`localhost:${port}`, `127.0.0.1:${port}`, "[::1]:1"]) expect(await status(host)).toBe(200);
    for (const host of [`evil.example:${port}`, "127.0.0.1.evil.example", "10.0.0.1"])
      expect(await status(host)).toBe(403);
  });

  it("are refused on every address under a public name that it was not given", async () => {
    const notes: string[] = [];
    using _ = await openMonitors({ prometheus: { host: "0.0.0.0", port: 0 } }, runAt(0) as never, (text) =>
      notes.push(text),
    );
    const { port } = new URL(/http\S+/.exec(notes[0]!)![0]);
    const [response] = await once(
      get({ host: "127.0.0.1", port, path: "/metrics", headers: { host: "evil.example" } }),
      "response",
    );
    expect(response.statusCode).toBe(403);
    expect(await streamText(response)).toContain("--prometheus NAME:PORT");
    expect((await fetch(`http://127.0.0.1:${port}/metrics`)).status).toBe(200);
  });

  it("are given once to a connection, and to a few connections at once", async () => {
    const notes: string[] = [];
    using _ = await openMonitors({ prometheus: { host: "127.0.0.1", port: 0 } }, runAt(0) as never, (text) =>
      notes.push(text),
    );
    const { port } = new URL(/http\S+/.exec(notes[0]!)![0]);
    const request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const many = connect(Number(port), "127.0.0.1").end(request.repeat(50));
    expect((await streamText(many)).match(/^HTTP\/1\.1 200/gm)).toHaveLength(1);

    const idle = Array.from({ length: 40 }, () => connect(Number(port), "127.0.0.1").on("error", () => {}));
    const closed = await Promise.all(idle.slice(16).map((socket) => once(socket.resume(), "close").then(() => true)));
    expect(closed).toEqual(Array(24).fill(true));
    for (const socket of idle) socket.destroy();
  });

  it("are given up in one line where the port is taken", async () => {
    const other = createServer();
    await new Promise<void>((done) => other.listen(0, "127.0.0.1", done));
    const { port } = other.address() as { port: number };
    try {
      const { notes } = await monitored({ prometheus: { host: "127.0.0.1", port } });
      expect(notes).toEqual([
        `prometheus: port ${port} is taken: choose another, --prometheus PORT; the run goes on without it`,
      ]);
    } finally {
      other.close();
    }
  });
});

it("is given up in one line where the folder cannot be written, and the other goes on", async () => {
  rmSync(folder, { recursive: true });
  const { writeFileSync } = await import("node:fs");
  writeFileSync(folder, "a file");
  const { notes, text } = await monitored({ tensorboard: true, prometheus: { host: "127.0.0.1", port: 0 } });
  expect(notes[0]).toMatch(/^tensorboard: .*; the run goes on without it$/);
  expect(text).toContain("terse_train_loss");
});
