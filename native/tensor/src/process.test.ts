import { spawnSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { describe, expect, it } from "vitest";
import { packageRoot, readBuildInfo } from "./index.ts";

/** Runs this code in a new Node process, with `native` in scope. */
function run(code: string, environment: Record<string, string> = {}) {
  const file = new URL("./index.ts", import.meta.url).href;
  const { LIBTORCH } = process.env;
  return spawnSync(
    process.execPath,
    [
      "--conditions=@terse/source",
      "--no-warnings",
      "--input-type=module",
      "-e",
      `const { native } = await import(${JSON.stringify(file)});\n${code}`,
    ],
    {
      encoding: "utf8",
      env: { PATH: process.env["PATH"] ?? "", ...(LIBTORCH ? { LIBTORCH } : {}), ...environment },
      maxBuffer: 1 << 28,
    },
  );
}

/** A malloc that takes no memory back. The one of glibc ends a process that gives it such memory. */
const otherMalloc = `
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
static _Atomic uintptr_t end;
static void* take(size_t size, size_t alignment) {
    static _Atomic uintptr_t begin;
    if (!begin) {
        uintptr_t none = 0, found = (uintptr_t)mmap(0, 1ull << 36, PROT_READ | PROT_WRITE,
                                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (__atomic_compare_exchange_n(&begin, &none, found, 0, 5, 5)) end = found;
        while (!end) {}
    }
    if (alignment < 16) alignment = 16;
    uintptr_t at = __atomic_fetch_add(&end, size + alignment + 16, 5) + 16;
    at = (at + alignment - 1) / alignment * alignment;
    ((size_t*)at)[-1] = size;
    return (void*)at;
}
void* malloc(size_t size) { return take(size, 16); }
void free(void* memory) { (void)memory; }
void* calloc(size_t count, size_t size) { return take(count * size, 16); }
void* memalign(size_t alignment, size_t size) { return take(size, alignment); }
void* aligned_alloc(size_t alignment, size_t size) { return take(size, alignment); }
size_t malloc_usable_size(void* memory) { return memory ? ((size_t*)memory)[-1] : 0; }
int posix_memalign(void** memory, size_t alignment, size_t size) { return !(*memory = take(size, alignment)); }
void* realloc(void* memory, size_t size) {
    size_t before = malloc_usable_size(memory);
    void* moved = take(size, 16);
    return memory ? memcpy(moved, memory, before < size ? before : size) : moved;
}
`;

const graph = `
  const call = (name, ...values) => native.call(native.find("aten::" + name), ...values);
  const x = call("randn", [600, 600], "f32");
  native.setRequiresGrad(x, true);
  let y = x;
  for (let i = 0; i < 20; i++) y = call("mm", y, x);
  const loss = call("sum", y);
`;

describe("a process", () => {
  it.each([0, 5, 20, 80])(
    "may exit while a backward runs and others are queued, without a signal (after %i ms)",
    (delay) => {
      const { status, signal, stderr } = run(`${graph}
      native.backward(loss, undefined, true); native.backward(loss, undefined, true); native.backward(loss, undefined, true);
      setTimeout(() => process.exit(7), ${delay});`);
      expect({ status, signal, stderr }).toEqual({ status: 7, signal: null, stderr: "" });
    },
  );

  it("stays alive until its last backward has settled, and not longer", () => {
    const { status, stdout } = run(
      `${graph} native.backward(loss, undefined, false).then(() => console.log("settled"));`,
    );
    expect({ status, stdout }).toEqual({ status: 0, stdout: "settled\n" });
  });

  it("has an error for a gradient that cannot be set to 0, as where a GPU has failed, and does not end", () => {
    const { status, stdout } = run(`
      const call = (name, ...values) => native.call(native.find("aten::" + name), ...values);
      const [x, y] = [2, 3].map((value) => call("full", [3], value, "f32"));
      for (const leaf of [x, y]) native.setRequiresGrad(leaf, true);
      native.setGrad(x, call("full", [3], 0, "f32"));
      native.setGrad(y, call("_efficientzerotensor", [3], "f32")); // cannot be written
      native.replaceGradients([y, x]);
      await native.backward(call("sum", x), undefined, false).catch((error) => console.log(error.message.split("\\n")[0]));
      console.log(native.item(call("sum", native.grad(x))));`);
    expect({ status, stdout }).toEqual({
      status: 0,
      stdout: expect.stringMatching(/^backward\(self: f32\[\]\): .*ZeroTensors are immutable.*\n3\n$/),
    });
  });

  it("has separate tensors in every worker, which may end at any time", () => {
    const { status, signal, stdout, stderr } = run(`
      import { Worker } from "node:worker_threads";
      import { once } from "node:events";
      const code = ${JSON.stringify(`${graph} await native.backward(loss, undefined, false); const g = native.grad(x); await import("node:worker_threads").then((w) => w.parentPort.postMessage(native.shape(g)));`)};
      const start = () => new Worker("const ready = import(" + JSON.stringify(${JSON.stringify(new URL("./index.ts", import.meta.url).href)}) + "); ready.then(async ({ native }) => {" + code + "});", { eval: true });
      const workers = [start(), start()];
      for (const [shape] of await Promise.all(workers.map((worker) => once(worker, "message")))) console.log(JSON.stringify(shape));
      const doomed = start();
      setTimeout(() => doomed.terminate(), 300);
      await once(doomed, "exit");
      console.log(native.memory().tensors);`);
    expect({ status, signal, stdout, stderr }).toEqual({
      status: 0,
      signal: null,
      stdout: "[600,600]\n[600,600]\n0\n",
      stderr: "",
    });
  });

  it("prints a warning of libtorch and continues", () => {
    // The standard deviation of one number. libtorch warns on std::cerr, of which Node and libtorch have different
    // copies.
    const { status, signal, stdout, stderr } = run(`
      const x = native.call(native.find("aten::ones"), [1], "f32");
      console.log(native.item(native.call(native.find("aten::std.correction"), x)));`);
    expect({ status, signal, stdout }).toEqual({ status: 0, signal: null, stdout: "NaN\n" });
    expect(stderr).toMatch(/degrees of freedom/);
  });

  it("opens libtorch at the first use, and not at the import", () => {
    const mapped = 'readFileSync("/proc/self/maps", "latin1").includes("libtorch_cpu.so")';
    const { stdout } = run(`
      import { readFileSync } from "node:fs";
      console.log(${mapped});
      console.log(native.item(native.call(native.find("aten::ones"), [1], "f32")), native.results(native.find("aten::add.Tensor")));
      console.log(${mapped});`);
    expect(stdout).toBe("false\n1 [ 'tensor' ]\ntrue\n");
  });

  it("uses OMP_NUM_THREADS threads", () => {
    expect(run("console.log(native.numThreads())", { OMP_NUM_THREADS: "1" }).stdout).toBe("1\n");
  });

  it("does not change the environment of child processes", () => {
    const code = "console.log(process.env.GOMP_SPINCOUNT)";
    expect(run(code).stdout).toBe("undefined\n");
    expect(run(code, { GOMP_SPINCOUNT: "7" }).stdout).toBe("7\n");
  });

  it("reports that CUDA was opened after the first backward", () => {
    const { stdout } = run(`${graph} await native.backward(loss, undefined, false);
      try { native.openDevice("cuda:0"); } catch (error) { console.log(error.message); }`);
    expect(stdout).toMatch(/^openDevice: CUDA must be opened before the first backward\(\)/);
  });
});

describe("libtorch in Node's process", () => {
  it("is the one that the addon was built against: LD_LIBRARY_PATH does not count", () => {
    const folder = mkdtempSync(join(tmpdir(), "terse-other-"));
    try {
      for (const name of ["libc10.so", "libtorch_cpu.so"]) writeFileSync(join(folder, name), "not a library");
      const { status, stderr } = run("native.memory()", { LD_LIBRARY_PATH: folder });
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("is an error that names both, if it is another one", () => {
    const folder = mkdtempSync(join(tmpdir(), "terse-other-"));
    try {
      const other = join(folder, "libc10.so");
      copyFileSync(join(readBuildInfo(packageRoot)!.libtorch, "lib", "libc10.so"), other);
      const { status, signal, stderr } = run("native.memory()", { LD_PRELOAD: other });
      expect({ status, signal }).toEqual({ status: 1, signal: null });
      expect(stderr).toMatch(
        /addon was built against \S+\/lib\/libc10\.so, but this process has \S+terse-other-\w+\/libc10\.so; set LIBTORCH/,
      );
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("takes the memory of a malloc that is preloaded, such as jemalloc's", () => {
    const folder = mkdtempSync(join(tmpdir(), "terse-malloc-"));
    try {
      const library = join(folder, "libothermalloc.so");
      const compiled = spawnSync("cc", ["-shared", "-fPIC", "-O1", "-fno-builtin", "-x", "c", "-", "-o", library], {
        input: otherMalloc,
        encoding: "utf8",
      });
      expect(compiled.stderr).toBe("");
      const { status, signal, stdout, stderr } = run(
        `${graph} await native.backward(loss, undefined, false); console.log(native.shape(native.grad(x)));
        try { native.call(native.find("aten::ones"), [-1], "f32"); } catch { console.log("caught"); }`,
        { LD_PRELOAD: library },
      );
      expect({ status, signal, stderr }).toEqual({ status: 0, signal: null, stderr: "" });
      expect(stdout).toBe("[ 600, 600 ]\ncaught\n");
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  /** Symbols of libtorch and its libraries that the dynamic linker bound to the node binary. */
  function boundToNode(environment: Record<string, string>): string[] {
    const folder = mkdtempSync(join(tmpdir(), "terse-bindings-"));
    try {
      const { status } = run("native.memory()", {
        ...environment,
        LD_DEBUG: "bindings",
        LD_DEBUG_OUTPUT: join(folder, "log"),
      });
      expect(status).toBe(0);
      const lines = readdirSync(folder).flatMap((name) => readFileSync(join(folder, name), "utf8").split("\n"));
      expect(lines.filter((line) => line.includes("libtorch_cpu.so")).length).toBeGreaterThan(1000);
      const node = basename(process.execPath);
      return lines.flatMap((line) => {
        const [, from, to, symbol] =
          /binding file (\S+) \[0\] to (\S+) \[0\]: normal symbol `([^']+)'/.exec(line) ?? [];
        const system = /\/lib(c|m|stdc\+\+|gcc_s|dl|pthread)\.so|ld-linux/.test(from ?? "");
        return from && to && symbol && basename(to) === node && basename(from) !== node && !system
          ? [`${basename(from)}: ${symbol}`]
          : [];
      });
    } finally {
      rmSync(folder, { recursive: true });
    }
  }

  it("binds no symbol to Node's OpenSSL, zlib or libuv, nor to anything else of Node except Node-API", () => {
    const bound = boundToNode({});
    expect(bound.filter((line) => !/^tensor\.node: napi_/.test(line))).toEqual([]);
    expect(bound.length).toBeGreaterThan(10);
    // Without RTLD_DEEPBIND it does. This shows that the check above can fail.
    expect(boundToNode({ TERSE_DEEPBIND: "0" }).some((line) => line.startsWith("libtorch_cpu.so: "))).toBe(true);
  });
});
