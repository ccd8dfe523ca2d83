/**
 * Another machine, as far as the network goes: a network namespace, with links to this one that a test can take down.
 * Needs root and ip.
 */
import { spawnSync } from "node:child_process";

export interface NamespaceLink {
  readonly here: string; // this machine's address
  readonly there: string; // the namespace's
  /** The link loses its carrier on both sides. On this one (by default the namespace's) its routes are gone too. */
  takeDown(side?: "here" | "there"): void;
  bringUp(side?: "here" | "there"): void;
}

export interface NetworkNamespace extends Disposable {
  readonly links: readonly NamespaceLink[];
  /** Runs a command of ip there, or on this machine; whether it succeeded. */
  ip(line: string): boolean;
  /** The words before a command that runs there. */
  readonly within: readonly string[];
}

const mostLinks = 16; // of a process
let opened = 0;

/** Throws the reason where this machine cannot do it. Interfaces there are called link0, link1 … */
export function openNamespace(links: number, skip: (why: string) => never): NetworkNamespace {
  const name = `terse-net-${process.pid}-${opened}`;
  const ip = (line: string) => spawnSync("ip", line.split(" "), { encoding: "utf8" }).status === 0;
  if (!ip(`netns add ${name}`)) return skip("a network namespace needs root and ip");
  const inside = (line: string) => ip(`-n ${name} ${line}`);
  const interfaces: string[] = [];
  const close = () => {
    for (const device of interfaces) ip(`link del ${device}`);
    ip(`netns del ${name}`);
  };
  const devices = Array.from({ length: links }, (_, i): NamespaceLink => {
    const number = opened++ % mostLinks;
    const device = `tn${process.pid}x${number}`;
    interfaces.push(device);
    // Four addresses, out of those that are reserved for network tests (RFC 2544).
    const first = 4 * ((process.pid % 2048) * mostLinks + number);
    const at = (offset: number) => `198.${18 + (first >> 16)}.${(first >> 8) & 255}.${(first & 255) + offset}`;
    const plan = [
      `link add ${device} type veth peer name link${i} netns ${name}`,
      `addr add ${at(1)}/30 dev ${device}`,
      `-n ${name} addr add ${at(2)}/30 dev link${i}`,
      `link set ${device} up`,
      `-n ${name} link set link${i} up`,
      `-n ${name} link set lo up`,
    ];
    if (!plan.every(ip)) {
      close();
      return skip("this kernel has no veth");
    }
    const set =
      (state: string) =>
      (side: "here" | "there" = "there") => {
        const done = side === "there" ? inside(`link set link${i} ${state}`) : ip(`link set ${device} ${state}`);
        if (!done) throw new Error(`link${i} of ${name} does not go ${state}`);
      };
    return { here: at(1), there: at(2), takeDown: set("down"), bringUp: set("up") };
  });
  return { links: devices, ip: inside, within: ["ip", "netns", "exec", name], [Symbol.dispose]: close };
}
