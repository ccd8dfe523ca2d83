import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { basename, dirname } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

/** How the process that runs a test file names itself. */
export const workerTitle = (file: string): string => `test ${basename(dirname(file))}/${basename(file)}`;

export interface Process {
  pid: number;
  parent: number;
  command: string;
}

/** The processes whose environment has this variable. Children inherit it, so orphans are found too. */
export function processesWith(variable: string): Process[] {
  return list("/proc")
    .filter((name) => /^\d+$/.test(name) && read(`/proc/${name}/environ`).split("\0").includes(variable))
    .map((pid) => ({
      pid: Number(pid),
      parent: Number(/^PPid:\s+(\d+)/m.exec(read(`/proc/${pid}/status`))?.[1]),
      command: read(`/proc/${pid}/cmdline`).replaceAll("\0", " ").trim(),
    }));
}

/** What a process is doing: its command, each thread's state, and the JavaScript stack of a test worker. */
export async function describeProcess({ pid, command }: Process): Promise<string> {
  const threads = list(`/proc/${pid}/task`).map((thread) => {
    const file = (name: string) => read(`/proc/${pid}/task/${thread}/${name}`).trim();
    const state = /^State:\s+(\S)/m.exec(file("status"))?.[1];
    return `thread ${file("comm")}: ${state}, ${file("wchan")}, system call ${file("syscall").split(" ")[0]}`;
  });
  const stack = command.startsWith("test ") ? await javaScriptStack(pid) : [];
  return [`  process ${pid}: ${command.slice(0, 300)}`, ...threads, ...stack].join("\n    ");
}

/** Where a Node process stands that is in JavaScript; one line without a stack for one that waits in native code. */
async function javaScriptStack(pid: number): Promise<string[]> {
  const ports = () => [...listeningPorts(pid)];
  const before = new Set(ports());
  try {
    process.kill(pid, "SIGUSR1"); // Node starts its inspector, on a thread of its own
    let port: number | undefined;
    for (let waited = 0; port === undefined && waited < 3000; waited += 100) {
      await delay(100);
      port = ports().find((each) => !before.has(each));
    }
    if (port === undefined) return ["no stack: the inspector did not start"];
    const [target] = (await (await fetch(`http://127.0.0.1:${port}/json`)).json()) as [
      { webSocketDebuggerUrl: string },
    ];
    return await pausedAt(target.webSocketDebuggerUrl);
  } catch (error) {
    return [`no stack: ${error instanceof Error ? error.message : error}`];
  }
}

interface CallFrame {
  functionName: string;
  location: { scriptId: string; lineNumber: number };
}

async function pausedAt(address: string): Promise<string[]> {
  const socket = new WebSocket(address);
  const files = new Map<string, string>(); // of scripts
  const paused = new Promise<string[]>((resolve, reject) => {
    socket.onerror = () => reject(new Error("the inspector did not answer"));
    socket.onopen = () => {
      socket.send(JSON.stringify({ id: 1, method: "Debugger.enable" }));
      socket.send(JSON.stringify({ id: 2, method: "Debugger.pause" }));
    };
    socket.onmessage = ({ data }) => {
      const { method, params } = JSON.parse(String(data));
      if (method === "Debugger.scriptParsed") files.set(params.scriptId, params.url);
      if (method !== "Debugger.paused") return;
      const frames = params.callFrames as CallFrame[];
      resolve(
        frames.map(
          ({ functionName, location: { scriptId, lineNumber } }) =>
            `at ${functionName || "(anonymous)"} ${files.get(scriptId)}:${lineNumber + 1}`,
        ),
      );
    };
  });
  const none = ["no stack: the thread is in native code, or waits for an event"];
  const stack = await Promise.race([paused, delay(3000, none)]);
  socket.close();
  return stack;
}

/** The TCP ports on which a process listens. */
function listeningPorts(pid: number): Set<number> {
  const listening = "0A";
  const inodes = new Map<string, number>();
  for (const line of read(`/proc/${pid}/net/tcp`).split("\n").slice(1)) {
    const [, local, , state, , , , , , inode] = line.trim().split(/\s+/);
    if (state === listening) inodes.set(`socket:[${inode}]`, Number.parseInt(local!.split(":")[1]!, 16));
  }
  const own = list(`/proc/${pid}/fd`).map((fd) => inodes.get(link(`/proc/${pid}/fd/${fd}`)));
  return new Set(own.filter((port) => port !== undefined));
}

const list = (folder: string) => attempt(() => readdirSync(folder), []);
const read = (file: string) => attempt(() => readFileSync(file, "utf8"), "");
const link = (file: string) => attempt(() => readlinkSync(file), "");

/** A process can end between two looks at it. */
function attempt<Value>(look: () => Value, otherwise: Value): Value {
  try {
    return look();
  } catch {
    return otherwise;
  }
}
