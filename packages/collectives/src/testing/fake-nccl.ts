/**
 * Builds the fakes in `native/collectives/fake` for tests: an NCCL, and a CUDA driver whose device memory is this
 * process's own.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const sources = fileURLToPath(new URL("../../../../native/collectives/fake", import.meta.url));
const compiler = process.env["CXX"] || "c++";
// No unique symbols, because two such libraries in one process must not share static variables.
const flags = "-std=c++20 -Wall -Wextra -Werror -O1 -fPIC -fvisibility=hidden -fno-gnu-unique".split(" ");
/** The sources of the NCCL. */
const parts = ["elements", "world", "nccl"];

export interface FakeLibrary {
  readonly library: string;
  readonly driver: string;
}

export interface FakeStreams {
  create(): bigint;
  /** Queues on the stream: wait so long, then set every byte. */
  fill(stream: bigint, pointer: bigint, bytes: number, value: number, milliseconds: number): void;
  /** One of `counted`. */
  count(what: number): number;
  breakContext(breaks: 0 | 1): void;
}

/** What `count` counts, numbered as in stream.h; `dangling`: buffers that were freed while registered. */
export const counted = { communicators: 0, dangling: 1, memory: 2, aborts: 3 } as const;

export interface FakeOptions {
  version?: number;
  /** How often a call, and a split, reports that it is in progress. */
  progress?: number;
  splitting?: number;
  /** Symbols that the library lacks. */
  without?: readonly string[];
  /** Error codes with which splits and registrations fail. */
  split?: number;
  register?: number;
}

export class FakeNccl implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), "terse-fake-nccl-"));
  readonly driver = join(this.folder, "libcuda.so.1");
  #variants = 0;

  constructor() {
    const shared = ["-shared", "-pthread", "-Wl,-soname,libcuda.so.1"];
    execFileSync(compiler, [...flags, ...shared, "-o", this.driver, join(sources, "cuda.cc")]);
    for (const part of parts)
      execFileSync(compiler, [...flags, "-c", "-o", join(this.folder, `${part}.o`), join(sources, `${part}.cc`)]);
  }

  build({ without = [], ...settings }: FakeOptions = {}): FakeLibrary {
    const folder = join(this.folder, `${this.#variants++}`);
    mkdirSync(folder);
    const [library, hidden] = [join(folder, "libnccl.so.2"), join(folder, "hidden")];
    writeFileSync(hidden, `{ global: *; local: ${without.map((name) => `${name};`).join(" ")} none; };`);
    const words = Object.entries(settings).map(([name, value]) => `${name}=${value}`);
    writeFileSync(join(folder, "fake.conf"), words.join(" "));
    const shared = ["-shared", "-pthread", "-Wl,-soname,libnccl.so.2", `-Wl,--version-script=${hidden}`];
    const inputs = [...parts.map((part) => join(this.folder, `${part}.o`)), this.driver, "-Wl,-rpath,$ORIGIN/.."];
    execFileSync(compiler, [...shared, "-o", library, ...inputs]);
    return { library, driver: this.driver };
  }

  /** Streams of the fake driver. */
  streams(): FakeStreams {
    const file = join(this.folder, "streams.node");
    const inputs = [join(sources, "streams.cc"), this.driver, "-Wl,-rpath,$ORIGIN"];
    execFileSync(compiler, [...flags, "-shared", "-pthread", "-o", file, ...inputs]);
    return createRequire(import.meta.url)(file) as FakeStreams;
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
