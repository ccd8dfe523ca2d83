/**
 * `./terse netlab --hosts N --rate 100mbit -- COMMAND` emulates several hosts on one machine. Each host is a network
 * namespace with its own link to a switch; the kernel (tbf) limits the rate in both directions. COMMAND runs once on
 * each host, with torchrun's environment variables, so that our ranks and PyTorch's find each other. It needs root, and
 * does not touch the machine's own network.
 *
 *   host 0  eth0 10.77.0.1 ══ rate ══╗
 *   host 1  eth0 10.77.0.2 ══ rate ══╬══ bridge, in a namespace of its own
 *   …                                ╝
 *
 * When this process ends, even by SIGKILL, a janitor process ends the hosts' processes and removes the namespaces. It
 * does so when a pipe closes. This process holds the pipe open, and so does each process that it starts, until that has
 * entered its namespace.
 */
import { type ChildProcess, type StdioOptions, spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { constants, cpus } from "node:os";
import { setImmediate as immediate } from "node:timers/promises";
// Files that import no package: netlab runs before any is installed.
import { endSignals } from "../../packages/options/src/end-signals.ts";
import { OptionsError } from "../../packages/options/src/options-error.ts";
import { parseArguments, wholeNumberFrom } from "../../packages/options/src/parse-arguments.ts";
import { which } from "../which.ts";

export interface Laboratory {
  readonly hosts: number;
  /** As tc writes it: 100mbit, 1gbit. */
  readonly rate: string;
  readonly command: readonly string[];
}

export class NetlabError extends Error {}

const usage = "usage: ./terse netlab --hosts N --rate 100mbit -- COMMAND";
const mostHosts = 64;

export const help = readFileSync(new URL("help.txt", import.meta.url), "utf8");

/** Reads the words of `./terse netlab`. Throws `OptionsError` for what it cannot read. */
export function readLaboratory(argv: readonly string[]): Laboratory | "help" {
  const {
    help,
    flags,
    words,
    rest = [],
  } = parseArguments(argv, {
    command: "./terse netlab",
    flags: { hosts: wholeNumberFrom({ least: 1, most: mostHosts }), rate: readRate },
  });
  if (help) return "help";
  if (rest.length === 0 || words.length > rest.length)
    throw new OptionsError([`write the command to run on each host after --; ${usage}`]);
  return { hosts: flags.hosts ?? 2, rate: flags.rate ?? "100mbit", command: rest };
}

function readRate(text: string): string {
  const rate = text.toLowerCase();
  const bits = bitsPerSecond(rate);
  if (bits >= 1e3 && bits <= 400e9) return rate;
  throw new RangeError(`expected a rate like 100mbit, from 1kbit to 400gbit, got "${text}"`);
}

/** "100mbit" → 1e8; NaN for what is no rate. */
function bitsPerSecond(rate: string): number {
  const [, number, unit] = rate.match(/^(\d+(?:\.\d+)?)([kmg]?)bit$/) ?? [];
  return Number(number) * { "": 1, k: 1e3, m: 1e6, g: 1e9 }[unit as "" | "k" | "m" | "g"];
}

/** Why netlab cannot run on this machine; undefined where it can. */
export function netlabObstacle(): string | undefined {
  const without = "`--emulate-link 100mbit` slows our own ranks down without it";
  for (const tool of ["ip", "tc"])
    if (where(tool) === undefined) return `${tool} is missing: install iproute2; ${without}`;
  if (process.getuid?.() !== 0) return `it needs root, for network namespaces; ${without}`;
  // One command, so that it deletes what it added even if we end.
  const probe = '"$0" netns add "$1" && "$0" netns del "$1"';
  const { status, stderr } = call("setsid", ["sh", "-c", probe, where("ip")!, `terse-probe-${process.pid}`]);
  return status === 0 ? undefined : `this machine allows no network namespaces (${stderr.trim()}); ${without}`;
}

/** Runs the command on every host. Resolves to 0, or to the exit code of the first host that failed. */
export async function netlab({ hosts, rate, command }: Laboratory): Promise<number> {
  const obstacle = netlabObstacle();
  if (obstacle) throw new NetlabError(obstacle);

  const name = `terse-${process.pid}`;
  const host = (i: number) => `${name}-host-${i}`;
  const address = (i: number) => `10.77.0.${i + 1}`;
  const machines = [`${name}-switch`, ...Array.from({ length: hosts }, (_, i) => host(i))];
  const janitor = startJanitor(machines);
  const running: ChildProcess[] = [];
  const toAll = (signal: NodeJS.Signals) => {
    for (const child of running) signalGroup(child, signal);
  };
  let code: number | undefined;
  const end = (why: number) => {
    code ??= why;
    toAll("SIGTERM");
    setTimeout(() => toAll("SIGKILL"), 5000).unref();
  };
  // The commands do not belong to this terminal's process group, so that each signal reaches them once, from here. They
  // may take their time to end, for example to save. A second signal ends them, but not one that comes with the first:
  // a shell and the kernel both send SIGHUP when a terminal is closed.
  let interrupted = false;
  let before = Number.NEGATIVE_INFINITY;
  const pass = (signal: (typeof endSignals)[number]) => {
    const time = performance.now();
    if (time - before < 100) return;
    before = time;
    toAll(interrupted ? "SIGKILL" : signal);
    interrupted = true;
    code ??= 128 + constants.signals[signal];
  };
  for (const signal of endSignals) process.on(signal, pass);

  try {
    const failure = attempt(() => build(machines, rate, janitor.waitsFor));
    await immediate(); // a signal may have come meanwhile, and ended a tool
    if (code !== undefined) return code;
    if (failure !== undefined) throw failure;
    const token = randomBytes(16).toString("hex");
    const ends = Array.from({ length: hosts }, (_, i) => {
      const env = {
        ...process.env,
        RANK: String(i),
        LOCAL_RANK: "0",
        WORLD_SIZE: String(hosts),
        LOCAL_WORLD_SIZE: "1",
        MASTER_ADDR: address(0),
        MASTER_PORT: "29500",
        TERSE_ADDRESS: address(i),
        TERSE_TOKEN: process.env["TERSE_TOKEN"] ?? token,
        GLOO_SOCKET_IFNAME: "eth0",
      };
      const inside = ["netns", "exec", host(i), "sh", "-c", 'exec 3>&-; exec "$@"', "sh", ...command];
      const stdio: StdioOptions = ["inherit", "inherit", "inherit", janitor.waitsFor];
      const child = spawn(where("ip")!, inside, { env, stdio, detached: true });
      running.push(child);
      return new Promise<void>((done) => {
        child.on("error", (error) => {
          process.stderr.write(`host ${i}: ${error.message}\n`);
          end(1);
          done();
        });
        child.on("close", (status, signal) => {
          if (status !== 0 && !interrupted) end(status ?? 128 + constants.signals[signal!]);
          done();
        });
      });
    });
    await Promise.all(ends);
    return code ?? 0;
  } finally {
    await janitor.end();
    for (const signal of endSignals) process.off(signal, pass);
  }
}

/** To all processes of the command, as a terminal does it. */
function signalGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(-pid, signal);
  } catch {
    // it has ended already
  }
}

/** The error that `work` throws, if it does. */
function attempt(work: () => void): unknown {
  try {
    work();
    return undefined;
  } catch (error) {
    return error;
  }
}

function build([middle, ...hosts]: readonly string[], rate: string, inherited: number): void {
  // The kernel's timer needs a burst of some milliseconds; it must also hold a few packets.
  const bytesPerSecond = bitsPerSecond(rate) / 8;
  const burst = Math.max(16 * 1024, Math.ceil(0.0025 * bytesPerSecond));
  const shape = (device: string, queue: number) =>
    `qdisc add dev ${device} root tbf rate ${rate} burst ${burst} limit ${Math.ceil(queue)}`.split(" ");
  // A switch queues 50 ms of traffic for a port, and drops the rest. A host's own queue holds a thousand packets,
  // Linux's default, so that a host does not drop what its own program sends.
  const [ofPort, ofHost] = [0.05 * bytesPerSecond + burst, 1000 * 1500];
  const steps: string[][] = [
    ["ip", "netns", "add", middle!],
    ["ip", "-n", middle!, "link", "add", "switch", "type", "bridge"],
    ["ip", "-n", middle!, "link", "set", "switch", "up"],
  ];
  for (const [i, host] of hosts.entries()) {
    steps.push(
      ["ip", "netns", "add", host],
      ["ip", "-n", host, "link", "add", "eth0", "type", "veth", "peer", "name", `port${i}`, "netns", middle!],
      ["ip", "-n", host, "addr", "add", `10.77.0.${i + 1}/24`, "dev", "eth0"],
      ["ip", "-n", host, "link", "set", "eth0", "up"],
      ["ip", "-n", host, "link", "set", "lo", "up"],
      ["ip", "-n", middle!, "link", "set", `port${i}`, "master", "switch", "up"],
      ["tc", "-n", host, ...shape("eth0", Math.max(ofPort, ofHost))],
      ["tc", "-n", middle!, ...shape(`port${i}`, ofPort)],
    );
  }
  for (const [tool, ...args] of steps) {
    const { status, stderr } = call(where(tool!)!, args, inherited);
    if (status !== 0) throw new NetlabError(`${tool} ${args.join(" ")}: ${stderr.trim()}`);
  }
  // Packets of one connection are received on one core, as with a network card. On several cores they would arrive out
  // of order, and TCP would take that for a loss.
  const cores = ((1n << BigInt(Math.min(32, cpus().length))) - 1n).toString(16);
  const steer = `for queue in /sys/class/net/*/queues/rx-*/rps_cpus; do echo ${cores} >$queue; done`;
  for (const machine of [middle!, ...hosts])
    call(where("ip")!, ["netns", "exec", machine, "sh", "-c", steer], inherited);
}

interface Janitor {
  /** Descriptor of the pipe: the janitor waits while any process holds it open. */
  readonly waitsFor: number;
  end(): Promise<void>;
}

/**
 * Starts a detached process (setsid), which no signal to this process group reaches. It removes the namespaces when its
 * pipe closes.
 */
function startJanitor(machines: readonly string[]): Janitor {
  // Several rounds: a process may start others while it is being ended.
  const program = `cat >/dev/null
for machine in "$@"; do
  for round in $(seq 100); do
    pids=$("$0" netns pids "$machine") && [ "$pids" ] || break
    kill -9 $pids
    sleep 0.02
  done
  "$0" netns del "$machine"
done`;
  const janitor = spawn("sh", ["-c", program, where("ip")!, ...machines], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  janitor.unref();
  const gone = new Promise<void>((done) => janitor.once("close", () => done()));
  return {
    // Node has no public way to get a pipe's descriptor.
    waitsFor: (janitor.stdin as unknown as { _handle: { fd: number } })._handle.fd,
    async end() {
      janitor.ref();
      janitor.stdin!.end();
      await gone;
    },
  };
}

/** Path of a system tool; /sbin and /usr/sbin are not on every PATH. */
const where = (tool: string) => which(tool, `${process.env["PATH"]}:/usr/sbin:/sbin`);

const call = (file: string, args: readonly string[], ...inherited: number[]) => {
  const stdio: StdioOptions = ["ignore", "pipe", "pipe", ...inherited];
  const { status, stderr, error } = spawnSync(file, args, { encoding: "utf8", stdio });
  return { status, stderr: error?.message ?? stderr };
};
