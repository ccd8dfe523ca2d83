import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { isRunning } from "../testing/is-running.ts";
import { which } from "../which.ts";
import { netlabObstacle, readLaboratory } from "./netlab.ts";

const obstacle = netlabObstacle();
const sbin = `${process.env["PATH"]}:/usr/sbin:/sbin`;
const main = join(import.meta.dirname, "main.ts");

function start(
  args: readonly string[],
  path = process.env["PATH"],
  detached = false,
): { child: ChildProcess; ended: Promise<{ code: number | null; out: string }> } {
  const env = { ...process.env, PATH: path };
  const child = spawn(process.execPath, [main, ...args], { env, stdio: ["ignore", "pipe", "pipe"], detached });
  let out = "";
  for (const stream of [child.stdout!, child.stderr!]) stream.on("data", (data) => (out += data));
  return { child, ended: new Promise((done) => child.on("close", (code) => done({ code, out }))) };
}

const namespaces = (pid: number) =>
  execFileSync("ip", ["netns", "list"], { encoding: "utf8" })
    .split("\n")
    .filter((line) => new RegExp(`^terse-(probe-)?${pid}\\b`).test(line));

async function until(holds: () => boolean): Promise<void> {
  for (let i = 0; i < 400 && !holds(); i++) await new Promise((resolve) => setTimeout(resolve, 25));
  expect(holds()).toBe(true);
}

describe("./terse netlab", () => {
  it("reads hosts, rate and command, and says what is wrong with them", () => {
    expect(readLaboratory(["--hosts", "3", "--rate=20mbit", "--", "sh", "-c", "x"])).toEqual({
      hosts: 3,
      rate: "20mbit",
      command: ["sh", "-c", "x"],
    });
    expect(() => readLaboratory(["--hosts", "0", "--", "true"])).toThrow(
      '--hosts: expected a whole number from 1 to 64, got "0"',
    );
    for (const rate of ["fast", "mbit", "100", "-1mbit", "1e3mbit", "0mbit", "999bit", "401gbit"])
      expect(() => readLaboratory(["--rate", rate, "--", "true"])).toThrow(
        `--rate: expected a rate like 100mbit, from 1kbit to 400gbit, got "${rate}"`,
      );
    expect(() => readLaboratory(["--host", "2", "--", "true"])).toThrow("--host: unknown flag; did you mean --hosts?");
    expect(() => readLaboratory(["true", "--", "true"])).toThrow("write the command to run on each host after --");
    expect(() => readLaboratory(["--hosts", "2"])).toThrow("write the command to run on each host after --");
  });

  it("shows its help", async () => {
    const { code, out } = await start(["--help"]).ended;
    expect(code).toBe(0);
    expect(out).toMatch(/^usage: .*--hosts N .*--rate RATE/s);
  });

  describe.skipIf(obstacle)(`with namespaces${obstacle ? ` (skipped: ${obstacle})` : ""}`, () => {
    it("runs the command on each host, with torchrun's environment variables", async () => {
      const program = 'echo "$RANK of $WORLD_SIZE, $TERSE_ADDRESS, $MASTER_ADDR, $(ip -o -4 addr show eth0 | wc -l)"';
      const { code, out } = await start(["--hosts", "3", "--", "sh", "-c", program]).ended;
      expect(code).toBe(0);
      expect(out.trim().split("\n").sort()).toEqual(
        [0, 1, 2].map((rank) => `${rank} of 3, 10.77.0.${rank + 1}, 10.77.0.1, 1`),
      );
    });

    it("limits the rate of a link", async () => {
      const bytes = 3e6;
      const program = `
        const net = require("node:net");
        if (process.env.RANK === "0") {
          net.createServer((socket) => {
            let got = 0, began;
            socket.on("data", (data) => {
              began ??= performance.now();
              got += data.length;
              if (got === ${bytes}) { console.log((8 * got) / (performance.now() - began) / 1e3); process.exit(0); }
            });
          }).listen(4000);
        } else {
          const connect = () => {
            const socket = net.connect(4000, process.env.MASTER_ADDR, () => socket.write(Buffer.alloc(${bytes}), () => socket.end()));
            socket.on("error", () => setTimeout(connect, 50));
            socket.on("close", (bad) => bad || process.exit(0));
          };
          connect();
        }`;
      const { code, out } = await start(["--hosts", "2", "--rate", "40mbit", "--", process.execPath, "-e", program])
        .ended;
      expect(code).toBe(0);
      expect(Number(out)).toBeGreaterThan(0);
      expect(Number(out)).toBeLessThan(44); // the first burst is free
    });

    it("drops nothing in a host's own queue, and keeps the packets of a connection in order", async () => {
      const [streams, bytes] = [6, 200_000];
      const program = `
        const net = require("node:net");
        const { execSync } = require("node:child_process");
        if (process.env.RANK === "0") {
          let got = 0;
          net.createServer((socket) => {
            socket.on("data", (data) => { if ((got += data.length) === ${streams * bytes}) process.exit(0); });
            socket.on("error", () => {});
          }).listen(4000);
        } else {
          let ended = 0;
          const end = () => {
            if (++ended < ${streams}) return;
            const [, dropped] = /dropped (\\d+)/.exec(execSync("PATH=$PATH:/usr/sbin:/sbin tc -s qdisc show dev eth0", { encoding: "utf8" }));
            const cores = execSync("cat /sys/class/net/eth0/queues/rx-0/rps_cpus", { encoding: "utf8" });
            console.log("dropped", dropped, "steered", !/^[0,]*$/.test(cores.trim()));
            process.exit(0);
          };
          const connect = () => {
            const socket = net.connect(4000, process.env.MASTER_ADDR, () => socket.write(Buffer.alloc(${bytes})));
            socket.on("error", (error) => (error.code === "ECONNREFUSED" ? setTimeout(connect, 50) : undefined));
            socket.on("close", () => socket.bytesWritten > 0 && end());
          };
          for (let i = 0; i < ${streams}; i++) connect();
        }`;
      const { code, out } = await start(["--hosts", "2", "--rate", "20mbit", "--", process.execPath, "-e", program])
        .ended;
      expect(code).toBe(0);
      expect(out).toBe("dropped 0 steered true\n");
    });

    it("may run beside another netlab, on its own network", async () => {
      const program = `
        const net = require("node:net");
        const connect = () => {
          const socket = net.connect(4000, process.env.MASTER_ADDR, () => socket.end(process.argv[1]));
          socket.on("error", () => setTimeout(connect, 50));
        };
        if (process.env.RANK === "0") net.createServer((socket) => socket.on("data", (data) => process.exit(console.log(String(data))))).listen(4000);
        else connect();`;
      const both = ["this", "that"].map((word) => start(["--", process.execPath, "-e", program, word]).ended);
      expect(await Promise.all(both)).toEqual([
        { code: 0, out: "this\n" },
        { code: 0, out: "that\n" },
      ]);
    });

    it("ends all hosts when one fails, and exits with its code", async () => {
      const program = '[ "$RANK" = 1 ] && exit 7; sleep 100';
      const { child, ended } = start(["--hosts", "2", "--", "sh", "-c", program]);
      expect((await ended).code).toBe(7);
      expect(namespaces(child.pid!)).toEqual([]);
    });

    it.each(["SIGKILL", "SIGTERM"] as const)("removes everything when it is ended by %s", async (signal) => {
      const marker = `${4000 + process.pid}.5`; // seconds of a sleep that nobody else sleeps
      const { child } = start(["--hosts", "2", "--", "sleep", marker]);
      await until(() => sleepers(marker) === 2);
      expect(namespaces(child.pid!)).toHaveLength(3);
      child.kill(signal);
      await until(() => namespaces(child.pid!).length === 0 && sleepers(marker) === 0);
    });

    // A terminal sends the signal of Ctrl-C to all processes of its foreground group.
    it.each([
      ["SIGINT", "the group", 130],
      ["SIGINT", "netlab", 130],
      ["SIGTERM", "netlab", 143],
      ["SIGHUP", "the group", 129],
    ] as const)(
      "hands %s to %s on once, as it is, and waits for the command's end",
      async (signal, target, expected) => {
        const program = `
        const { RANK } = process.env;
        for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
          process.on(signal, () => {
            console.log(RANK + " " + signal);
            setTimeout(() => console.log(RANK + " ends") ?? process.exit(RANK === "0" ? 5 : 0), RANK === "0" ? 300 : 1500);
          });
        console.log(RANK + " ready");
        setInterval(() => {}, 1000);`;
        const { child, ended } = start(["--hosts", "2", "--", process.execPath, "-e", program], undefined, true);
        let out = "";
        child.stdout!.on("data", (data) => (out += data));
        await until(() => out.split("ready").length === 3);
        process.kill(target === "netlab" ? child.pid! : -child.pid!, signal);
        child.kill(signal); // as SIGHUP comes twice when a terminal is closed
        const { code } = await ended;
        expect([code, out.trim().split("\n").sort()]).toEqual([
          expected,
          [`0 ${signal}`, "0 ends", "0 ready", `1 ${signal}`, "1 ends", "1 ready"],
        ]);
        expect(namespaces(child.pid!)).toEqual([]);
      },
    );

    it("ends a command that goes on after a signal when a second one comes", async () => {
      const marker = `${4000 + process.pid}.25`;
      const program = `trap "" INT; echo ready; sleep ${marker}`;
      const { child, ended } = start(["--hosts", "1", "--", "sh", "-c", program]);
      await once(child.stdout!, "data");
      child.kill("SIGINT");
      await new Promise((resolve) => setTimeout(resolve, 200));
      expect(sleepers(marker)).toBe(1);
      child.kill("SIGINT");
      expect((await ended).code).toBe(130);
      expect([sleepers(marker), namespaces(child.pid!)]).toEqual([0, []]);
    });

    it("ends with the signal's code where it comes while the hosts are set up", async () => {
      const folder = mkdtempSync(join(tmpdir(), "terse-netlab-"));
      const begun = join(folder, "begun");
      const wait = `echo "$*" | grep -q 'host-0 link set eth0 up' && { touch ${begun}; exec sleep 1; }`;
      writeFileSync(join(folder, "ip"), `#!/bin/sh\n${wait}\nexec ${which("ip", sbin)} "$@"\n`, { mode: 0o755 });
      const { child, ended } = start(["--", "echo", "ran"], `${folder}:${sbin}`, true);
      await until(() => existsSync(begun));
      process.kill(-child.pid!, "SIGINT");
      expect(await ended).toEqual({ code: 130, out: "" });
      expect(namespaces(child.pid!)).toEqual([]);
      rmSync(folder, { recursive: true });
    });

    it.each([
      "netns add terse-probe-",
      "netns add terse-.*-host-0",
      "link add eth0",
      "netns exec .*-host-1 sh -c exec",
    ])("removes everything when it is killed during: ip %s", async (what) => {
      const folder = mkdtempSync(join(tmpdir(), "terse-netlab-"));
      const begun = join(folder, "begun");
      const wait = `echo "$*" | grep -q '${what}' && { echo $$ >${begun}.part; mv ${begun}.part ${begun}; sleep 1; }`;
      writeFileSync(join(folder, "ip"), `#!/bin/sh\n${wait}\nexec ${which("ip", sbin)} "$@"\n`, { mode: 0o755 });
      const { child } = start(["--hosts", "2", "--", "sleep", "100"], `${folder}:${sbin}`);
      await until(() => existsSync(begun));
      const slow = readFileSync(begun, "utf8").trim();
      child.kill("SIGKILL");
      await until(() => !isRunning(slow));
      await until(() => namespaces(child.pid!).length === 0);
      rmSync(folder, { recursive: true });
    });

    it("ends a command that starts other processes while it is ended", async () => {
      const marker = `30.${process.pid}`;
      const program = `for i in $(seq 3000); do sleep ${marker} & done; wait`;
      const { child } = start(["--hosts", "1", "--", "sh", "-c", program]);
      await until(() => sleepers(marker) > 0);
      child.kill("SIGKILL");
      await until(() => namespaces(child.pid!).length === 0);
      expect(sleepers(marker)).toBe(0);
    });

    it("reports an error in one line", async () => {
      const { code, out } = await start(["--hosts", "1", "--", "no-such-program"]).ended;
      expect([code, out]).toEqual([127, expect.stringMatching(/^sh: .*no-such-program.*\n$/)]);
    });

    it("finds its tools when /sbin is not on the PATH", async () => {
      const folder = mkdtempSync(join(tmpdir(), "terse-netlab-"));
      for (const tool of ["sh", "setsid", "cat", "seq", "sleep"]) symlinkSync(which(tool)!, join(folder, tool));
      const { code, out } = await start(["--hosts", "2", "--", "sh", "-c", "echo $PATH"], folder).ended;
      rmSync(folder, { recursive: true });
      expect([code, out]).toEqual([0, `${folder}\n`.repeat(2)]);
    });
  });
});

function sleepers(marker: string): number {
  const lines = execFileSync("ps", ["-eo", "args"], { encoding: "utf8" }).split("\n");
  return lines.filter((line) => line === `sleep ${marker}`).length;
}
