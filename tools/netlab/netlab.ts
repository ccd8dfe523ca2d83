/**
 * `./terse netlab --hosts N --rate 100mbit -- COMMAND`: several hosts on one machine. Each is a network namespace with a link of its own
 * to a switch, shaped by the kernel (tbf) in both directions; COMMAND runs once on each, with the environment names of torchrun, so
 * that our ranks, and PyTorch's, find each other. Needs root. The machine's own network is not touched.
 *
 *   host 0  eth0 10.77.0.1 ══ rate ══╗
 *   host 1  eth0 10.77.0.2 ══ rate ══╬══ bridge, in a namespace of its own
 *   …                                ╝
 *
 * Whatever ends this process, SIGKILL included, ends the hosts' processes and removes the namespaces: a janitor waits for the end of a
 * pipe that only this process holds open.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { constants, cpus } from "node:os";
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

export const help = `${usage}

  --hosts N     hosts, on each of which COMMAND runs once: 1 to ${mostHosts} (2)
  --rate RATE   of each host's link to the switch, in both directions: kbit, mbit or gbit a second (100mbit)

A host is a network namespace. COMMAND finds RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in its environment, as torchrun sets them,
and a TERSE_TOKEN. The exit code is that of the first host that fails; then the others are ended. Needs root, ip and tc.
`;

export function readLaboratory(argv: readonly string[]): Laboratory {
  const end = argv.indexOf("--");
  const command = end < 0 ? [] : argv.slice(end + 1);
  const options = new Map<string, string>();
  const words = (end < 0 ? argv : argv.slice(0, end)).flatMap((word) => word.split(/=(.*)/s).slice(0, 2));
  for (let i = 0; i < words.length; i += 2) {
    if (!["--hosts", "--rate"].includes(words[i]!) || words[i + 1] === undefined)
      throw new NetlabError(`${words[i]} is no option with a value here; ${usage}`);
    options.set(words[i]!, words[i + 1]!);
  }
  const hosts = Number(options.get("--hosts") ?? 2);
  const rate = (options.get("--rate") ?? "100mbit").toLowerCase();
  if (!Number.isInteger(hosts) || hosts < 1 || hosts > mostHosts)
    throw new NetlabError(`--hosts is ${options.get("--hosts")}, and must be a whole number from 1 to ${mostHosts}`);
  if (!/^\d+(\.\d+)?[kmg]?bit$/.test(rate) || Number.parseFloat(rate) === 0)
    throw new NetlabError(`--rate is ${rate}, and is written like 100mbit (kbit, mbit, gbit)`);
  if (command.length === 0) throw new NetlabError(`there is nothing to run; ${usage}`);
  return { hosts, rate, command };
}

/** Why there can be no laboratory here; undefined where there can. */
export function netlabObstacle(): string | undefined {
  const without = "`--emulate-link 100mbit` slows our own ranks down without it";
  for (const tool of ["ip", "tc"])
    if (!which(tool, `${process.env["PATH"]}:/usr/sbin:/sbin`))
      return `${tool} is missing: install iproute2; ${without}`;
  if (process.getuid?.() !== 0) return `it needs root, for network namespaces; ${without}`;
  const probe = `terse-probe-${process.pid}`;
  const { status, stderr } = ip("netns", "add", probe);
  if (status !== 0) return `this machine allows no network namespaces (${stderr.trim()}); ${without}`;
  ip("netns", "del", probe);
  return undefined;
}

/** Runs the command on every host. Resolves to the exit code: 0, or that of the first host that failed. */
export async function netlab({ hosts, rate, command }: Laboratory): Promise<number> {
  const obstacle = netlabObstacle();
  if (obstacle) throw new NetlabError(obstacle);

  const name = `terse-${process.pid}`;
  const host = (i: number) => `${name}-host-${i}`;
  const address = (i: number) => `10.77.0.${i + 1}`;
  const machines = [`${name}-switch`, ...Array.from({ length: hosts }, (_, i) => host(i))];
  const stopJanitor = startJanitor(machines);
  const running: ChildProcess[] = [];
  let code: number | undefined;
  const end = (why: number) => {
    code ??= why;
    for (const child of running) child.kill("SIGTERM");
    setTimeout(() => {
      for (const child of running) child.kill("SIGKILL");
    }, 5000).unref();
  };
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const signal of signals) process.once(signal, () => end(128 + constants.signals[signal]));

  try {
    build(machines, rate);
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
      const child = spawn("ip", ["netns", "exec", host(i), ...command], { env, stdio: "inherit" });
      running.push(child);
      return new Promise<void>((done) => {
        child.on("error", (error) => {
          process.stderr.write(`host ${i}: ${error.message}\n`);
          end(1);
          done();
        });
        child.on("close", (status, signal) => {
          if (status !== 0) end(status ?? 128 + constants.signals[signal!]);
          done();
        });
      });
    });
    await Promise.all(ends);
    return code ?? 0;
  } finally {
    await stopJanitor();
  }
}

function build([middle, ...hosts]: readonly string[], rate: string): void {
  // A burst of some milliseconds, as the kernel's timer needs it; and no less than a few packets.
  const [, number, unit] = rate.match(/^([\d.]+)([kmg]?)bit$/)!;
  const bytesPerSecond = (Number(number) * { "": 1, k: 1e3, m: 1e6, g: 1e9 }[unit as "" | "k" | "m" | "g"]) / 8;
  const burst = Math.max(16 * 1024, Math.ceil(0.0025 * bytesPerSecond));
  const shape = (device: string, queue: number) =>
    `qdisc add dev ${device} root tbf rate ${rate} burst ${burst} limit ${Math.ceil(queue)}`.split(" ");
  // A switch holds 50 ms for a port, and then drops; a host's own queue is a thousand packets, as Linux has it, so that what one program
  // sends is not dropped before it has left.
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
    const { status, stderr } = call(tool!, args);
    if (status !== 0) throw new NetlabError(`${tool} ${args.join(" ")}: ${stderr.trim()}`);
  }
  // Packets of one connection are received on one core, as a card has it: on several they overtake each other, which TCP takes for a loss.
  const cores = ((1n << BigInt(Math.min(32, cpus().length))) - 1n).toString(16);
  const steer = `for queue in /sys/class/net/*/queues/rx-*/rps_cpus; do echo ${cores} >$queue; done`;
  for (const machine of [middle!, ...hosts]) ip("netns", "exec", machine, "sh", "-c", steer);
}

/** A process that no signal to this one reaches, which removes the namespaces when the pipe to it ends. Returns what ends it in good time. */
function startJanitor(machines: readonly string[]): () => Promise<void> {
  const program = `cat >/dev/null
for machine in "$@"; do
  ip netns pids "$machine" 2>/dev/null | xargs -r kill -9 2>/dev/null
  ip netns del "$machine" 2>/dev/null
done`;
  const janitor = spawn("sh", ["-c", program, "janitor", ...machines], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  janitor.unref();
  const gone = new Promise<void>((done) => janitor.once("close", () => done()));
  return async () => {
    janitor.ref();
    janitor.stdin!.end();
    await gone;
  };
}

const ip = (...args: string[]) => call("ip", args);

const call = (tool: string, args: readonly string[]) => {
  const { status, stderr, error } = spawnSync(tool, args, { encoding: "utf8" });
  return { status, stderr: error?.message ?? stderr };
};
