import { execFileSync } from "node:child_process";
import { existsSync, globSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { collectives } from "./index.ts";

const folder = mkdtempSync(join(tmpdir(), "terse-nccl-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const sources = fileURLToPath(new URL("..", import.meta.url));
const compiler = process.env["CXX"] || "c++";

/** The folder where pip installed NVIDIA's library and header for the tests. */
const packages = findPackages();
function findPackages(): string | undefined {
  try {
    const code = "import sysconfig; print(sysconfig.get_path('purelib'))";
    const found = execFileSync(process.env["TERSE_PYTHON"] || "python3", ["-c", code], { encoding: "utf8" }).trim();
    return existsSync(join(found, "nvidia/nccl/lib/libnccl.so.2")) ? found : undefined;
  } catch {
    return undefined;
  }
}

describe.skipIf(!packages)("NCCL itself (skipped where the tests' Python has no nvidia-nccl)", () => {
  const library = join(packages ?? "", "nvidia/nccl/lib/libnccl.so.2");

  it("opens, reports the version that pip installed, and has every symbol", () => {
    const info = globSync("nvidia_nccl_cu*.dist-info", { cwd: packages! })[0];
    const version = /-(\d+\.\d+\.\d+)/.exec(info ?? "")?.[1];
    const status = collectives().ncclStatus(library);
    expect(status).toMatchObject({ version, path: library, absent: [] });
    // This machine may have no driver; the library is not the reason.
    expect(status.reason).not.toContain("NCCL");
    expect(status.available).toBe(status.reason === "");
  });

  it("makes unique ids of 128 bytes, all different", () => {
    // NCCL listens on an interface, and every sandbox has lo.
    process.env["NCCL_SOCKET_IFNAME"] ||= "lo";
    const [first, second] = [collectives().ncclUniqueId(library), collectives().ncclUniqueId(library)];
    expect([first.length, second.length]).toEqual([128, 128]);
    expect(Buffer.compare(first, second)).not.toBe(0);
  });

  it("matches the declarations in api.h and config.h", () => {
    // The only parts of CUDA's headers that nccl.h uses.
    writeFileSync(join(folder, "cuda_runtime.h"), "#include <cstddef>\ntypedef struct CUstream_st* cudaStream_t;\n");
    for (const name of ["cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h"]) writeFileSync(join(folder, name), "");
    const enums = {
      success: "ncclSuccess",
      invalid_usage: "ncclInvalidUsage",
      remote_error: "ncclRemoteError",
      in_progress: "ncclInProgress",
      "Reduce::sum": "ncclSum",
      "Reduce::prod": "ncclProd",
      "Reduce::max": "ncclMax",
      "Reduce::min": "ncclMin",
      "Reduce::avg": "ncclAvg",
      "Type::i8": "ncclInt8",
      "Type::u8": "ncclUint8",
      "Type::i32": "ncclInt32",
      "Type::u32": "ncclUint32",
      "Type::i64": "ncclInt64",
      "Type::u64": "ncclUint64",
      "Type::f16": "ncclFloat16",
      "Type::f32": "ncclFloat32",
      "Type::f64": "ncclFloat64",
      "Type::bf16": "ncclBfloat16",
    };
    // Our struct may be longer than the header's; the fields must match.
    const fields = {
      blocking: "blocking",
      cga_cluster_size: "cgaClusterSize",
      min_ctas: "minCTAs",
      max_ctas: "maxCTAs",
      net_name: "netName",
      split_share: "splitShare",
      traffic_class: "trafficClass",
      comm_name: "commName",
      collnet_enable: "collnetEnable",
      cta_policy: "CTAPolicy",
      shrink_share: "shrinkShare",
      nvls_ctas: "nvlsCTAs",
      channels_per_net_peer: "nChannelsPerNetPeer",
      nvlink_centric_sched: "nvlinkCentricSched",
      graph_usage_mode: "graphUsageMode",
    };
    const file = join(folder, "declarations.cc");
    writeFileSync(
      file,
      `#include <nccl.h>
#include <type_traits>
#include "engines/nccl/config.h"
using namespace terse::nccl;
// One of our pointers may call NVIDIA's function if result and arguments have the same kinds and sizes: enums and
// handles differ only in name.
template <typename A, typename B> constexpr bool same = sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B> && std::is_class_v<A> == std::is_class_v<B>;
template <typename R, typename... A, typename S, typename... B>
constexpr bool fits(R (*)(A...), S (*)(B...)) { if constexpr (sizeof...(A) == sizeof...(B)) return same<R, S> && (same<A, B> && ...); else return false; }
#define CHECK(name, result, ...) static_assert(fits(static_cast<result (*)(__VA_ARGS__)>(nullptr), static_cast<decltype(&nccl##name)>(nullptr)), #name);
TERSE_NCCL_REQUIRED(CHECK)
TERSE_NCCL_OPTIONAL(CHECK)
${Object.entries(enums)
  .map(([ours, theirs]) => `static_assert(static_cast<unsigned>(${ours}) == ${theirs});`)
  .join("\n")}
${Object.entries(fields)
  .map(([ours, theirs]) => `static_assert(offsetof(Config, ${ours}) == offsetof(ncclConfig_t, ${theirs}));`)
  .join("\n")}
static_assert(no_color == NCCL_SPLIT_NOCOLOR);
static_assert(sizeof(UniqueId) == sizeof(ncclUniqueId) && sizeof(Config) >= sizeof(ncclConfig_t));
int main() { return config_version >= NCCL_VERSION_CODE ? 0 : 1; }
`,
    );
    const includes = [sources, folder, join(packages!, "nvidia/nccl/include")];
    const program = join(folder, "declarations");
    const flags = ["-std=c++20", "-Wno-invalid-offsetof", ...includes.map((each) => `-I${each}`)];
    execFileSync(compiler, [...flags, "-o", program, file], { stdio: "pipe" });
    execFileSync(program);
  });
});

describe("the search for NCCL", () => {
  it("never throws, and says what it tried", () => {
    const status = collectives().ncclStatus(join(folder, "libnccl.so.2"), join(folder, "libcuda.so.1"));
    expect(status).toEqual({
      available: false,
      reason: expect.stringMatching(
        /^NCCL does not open \(\S+ does not exist\): install it by `pip install nvidia-nccl-cu13` .*; the NVIDIA driver does not open/,
      ),
      devices: 0,
    });
  });

  it("says why a file that is no library does not open", () => {
    const file = join(folder, "text.so");
    writeFileSync(file, "this is no library");
    expect(collectives().ncclStatus(file).reason).toMatch(/text\.so: (file too short|invalid ELF header)/);
  });

  it.skipIf(!packages)("finds pip's library beside the libtorch that LIBTORCH names", (context) => {
    const before = process.env["LIBTORCH"];
    process.env["LIBTORCH"] = join(packages!, "torch");
    try {
      const { path } = collectives().ncclStatus();
      if (path && !path.startsWith(packages!)) return context.skip(`this machine has another one: ${path}`);
      expect(path).toBe(join(packages!, "nvidia/nccl/lib/libnccl.so.2"));
    } finally {
      if (before === undefined) delete process.env["LIBTORCH"];
      else process.env["LIBTORCH"] = before;
    }
  });
});
