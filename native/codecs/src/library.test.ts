import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "..");
const [, example, exampleOutput] = readFileSync(join(root, "README.md"), "utf8").match(
  /```c\n([\s\S]*?)```\s*```text\n([\s\S]*?)```/,
)!;

// Options, a frame and a status, in what C11 and C++17 have in common.
const consumer = `
#include <terse/codecs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
    const float x[] = {1, -1, -1, 1, 1, 1, -1, 1, 1};
    const terse_codec *sign, *terngrad;
    if (terse_codecs_abi() != TERSE_CODECS_ABI || terse_codec_find(&sign, "sign", NULL) != TERSE_CODEC_OK) return 1;
    terse_codec_options options = TERSE_CODEC_OPTIONS;
    options.zero = TERSE_ZERO_PLUS;
    uint8_t frame[128];
    size_t bytes, wire_at;
    if (terse_frame_bytes(sign, 9, &options, &bytes, &wire_at) != TERSE_CODEC_OK || bytes > sizeof frame) return 2;
    if (terse_codec_encode(sign, frame + wire_at, 2, x, 9, &options, NULL) != TERSE_CODEC_OK) return 3;
    if (terse_frame_write(sign, frame, bytes, frame + wire_at, 2, 9, &options) != TERSE_CODEC_OK) return 4;
    terse_frame read;
    if (terse_frame_read(&read, frame, bytes, NULL, 0) != TERSE_CODEC_OK || read.n != 9) return 5;
    float sum[9] = {0};
    if (terse_codec_decode_add(read.codec, sum, read.n, read.wire, read.wire_bytes, &read.options) != TERSE_CODEC_OK) return 6;
    if (memcmp(sum, x, sizeof x)) return 7;
    size_t none;
    terse_codec_options infinite = TERSE_CODEC_OPTIONS;
    infinite.clip = strtof("inf", NULL);
    if (terse_codec_find(&terngrad, "terngrad", NULL) != TERSE_CODEC_OK) return 8;
    if (terse_frame_bytes(terngrad, 9, &infinite, &none, &none) != TERSE_CODEC_BAD_CHOICE) return 9;
    frame[bytes - 1] ^= 1;
    puts(terse_codec_sentence(terse_frame_read(&read, frame, bytes, NULL, 0)));
    return 0;
}
`;
const consumerOutput = "The frame is damaged: its checksum is not that of its bytes.\n";

// Opens and closes a library twice, whose threads have worked in between: argv is the library.
const unloading = `
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <terse/codecs.h>

int main(int count, char **words) {
    const size_t n = 1 << 21;
    float *x = calloc(n, sizeof(float));
    uint8_t *wire = malloc(n / 8);
    for (int i = 0; i < 2 && count == 2; i++) {
        void *library = dlopen(words[1], RTLD_NOW);
        if (!library) return puts(dlerror()), 1;
        int (*work)(const float *, size_t, uint8_t *) = (int (*)(const float *, size_t, uint8_t *))dlsym(library, "work");
        if (!work || work(x, n, wire) != TERSE_CODEC_OK) return 2;
        dlclose(library);
        usleep(50000); // so that the threads wait for work
    }
    puts("still here");
}
`;
const plugin = `
#include <terse/codecs.h>

int work(const float *x, size_t n, uint8_t *wire) {
    const terse_codec *sign;
    terse_codecs_use_threads(4);
    terse_codec_options options = TERSE_CODEC_OPTIONS;
    options.zero = TERSE_ZERO_PLUS;
    return terse_codec_find(&sign, "sign", NULL) || terse_codec_encode(sign, wire, n / 8, x, n, &options, NULL);
}
`;

const strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];
const has = (command: string): boolean => spawnSync(command, ["--version"]).error === undefined;
const noCMake = has("cmake") ? "" : " (skipped: there is no cmake on the path)";
const noPkgConfig = noCMake || (has("pkg-config") ? "" : " (skipped: there is no pkg-config)");
const noNm = noCMake || (has("nm") ? "" : " (skipped: there is no nm)");

describe.skipIf(noCMake)(`the plain C library, built by cmake and installed${noCMake}`, () => {
  let folder: string;
  let installed: string;
  let libraries: string;
  const run = (command: string, ...words: string[]): string =>
    execFileSync(command, words, {
      cwd: folder,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, TERSE_IMPLEMENTATION: "", PKG_CONFIG_PATH: join(libraries ?? "", "pkgconfig") },
    });

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "terse-library-"));
    installed = join(folder, "installed");
    // The build stays, so that the next run compiles what changed.
    const build = join(root, "build/library");
    // Nothing is computed much here; without optimisation it compiles in half the time. The flags are somebody's, and
    // do not let the library forget what infinity is.
    const flags = ["-DCMAKE_BUILD_TYPE=None", "-DCMAKE_C_FLAGS=-ffast-math"];
    run("cmake", "-S", root, "-B", build, "-DCMAKE_INSTALL_LIBDIR=lib", ...flags);
    run("cmake", "--build", build, "--parallel", "2", "--target", "terse_codecs", "terse_codecs_static");
    run("cmake", "--install", build, "--prefix", installed);
    libraries = join(installed, "lib");
    writeFileSync(join(folder, "example.c"), example!);
    writeFileSync(join(folder, "consumer.c"), consumer);
    writeFileSync(join(folder, "consumer.cc"), consumer);
  }, 600_000);

  afterAll(() => rmSync(folder, { recursive: true }));

  it.skipIf(noPkgConfig)(`is found by pkg-config, in C11 and C++17${noPkgConfig}`, () => {
    const flags = run("pkg-config", "--cflags", "--libs", "terse-codecs").trim().split(/\s+/);
    const rpath = `-Wl,-rpath,${libraries}`;
    run("cc", "-std=c11", ...strict, "example.c", ...flags, rpath, "-o", "example");
    expect(run("./example")).toBe(exampleOutput);
    run("cc", "-std=c11", ...strict, "consumer.c", ...flags, rpath, "-o", "consumer-c");
    expect(run("./consumer-c")).toBe(consumerOutput);
    run("c++", "-std=c++17", ...strict, "consumer.cc", ...flags, rpath, "-o", "consumer-cc");
    expect(run("./consumer-cc")).toBe(consumerOutput);
    expect(run("pkg-config", "--modversion", "terse-codecs").trim()).toBe(abiOfHeader());
  });

  it("is found by CMake, shared and static, in C11 and C++17", () => {
    writeFileSync(
      join(folder, "CMakeLists.txt"),
      `cmake_minimum_required(VERSION 3.18)
project(consumer C CXX)
set(CMAKE_C_STANDARD 11)
set(CMAKE_CXX_STANDARD 17)
find_package(terse_codecs ${abiOfHeader()} REQUIRED)
foreach(source consumer.c consumer.cc)
  string(REPLACE . _ name \${source})
  add_executable(\${name}_shared \${source})
  target_link_libraries(\${name}_shared terse_codecs::terse_codecs)
  add_executable(\${name}_static \${source})
  target_link_libraries(\${name}_static terse_codecs::terse_codecs_static)
endforeach()
`,
    );
    run("cmake", "-S", ".", "-B", "with-cmake", `-DCMAKE_PREFIX_PATH=${installed}`);
    run("cmake", "--build", "with-cmake");
    for (const program of ["consumer_c_shared", "consumer_c_static", "consumer_cc_shared", "consumer_cc_static"])
      expect(run(`./with-cmake/${program}`), program).toBe(consumerOutput);
  });

  it("stays in memory after a plugin that has used its threads is unloaded", () => {
    writeFileSync(join(folder, "unloading.c"), unloading);
    writeFileSync(join(folder, "plugin.c"), plugin);
    mkdirSync(join(folder, "plugins"));
    writeFileSync(
      join(folder, "plugins/CMakeLists.txt"),
      `cmake_minimum_required(VERSION 3.18)
project(plugins C)
find_package(terse_codecs REQUIRED)
add_library(shared MODULE ../plugin.c)
target_link_libraries(shared terse_codecs::terse_codecs)
add_library(static MODULE ../plugin.c)
target_link_libraries(static terse_codecs::terse_codecs_static)
add_executable(unloading ../unloading.c)
target_include_directories(unloading PRIVATE ${installed}/include)
target_link_libraries(unloading \${CMAKE_DL_LIBS})
`,
    );
    run("cmake", "-S", "plugins", "-B", "plugins/build", `-DCMAKE_PREFIX_PATH=${installed}`);
    run("cmake", "--build", "plugins/build");
    for (const linked of ["shared", "static"])
      expect(run("./plugins/build/unloading", `plugins/build/lib${linked}.so`), linked).toBe("still here\n");
  });

  it("is a part of another CMake project, under the names that find_package gives", () => {
    mkdirSync(join(folder, "part"));
    writeFileSync(
      join(folder, "part/CMakeLists.txt"),
      `cmake_minimum_required(VERSION 3.18)
project(whole C)
add_subdirectory(${root} codecs EXCLUDE_FROM_ALL)
add_executable(shared ../consumer.c)
target_link_libraries(shared terse_codecs::terse_codecs)
add_executable(static ../consumer.c)
target_link_libraries(static terse_codecs::terse_codecs_static)
`,
    );
    run("cmake", "-S", "part", "-B", "part/build");
  });

  it.skipIf(noPkgConfig)(`is where whole paths of its folders say${noPkgConfig}`, () => {
    const whole = join(folder, "whole");
    const folders = [`-DCMAKE_INSTALL_LIBDIR=${whole}/lib`, `-DCMAKE_INSTALL_INCLUDEDIR=${whole}-dev/include`];
    run("cmake", "-S", root, "-B", "configured", `-DCMAKE_INSTALL_PREFIX=${whole}`, ...folders);
    const flags = run("pkg-config", "--cflags", "--libs", "./configured/terse-codecs.pc").trim();
    expect(flags).toBe(`-I${whole}-dev/include -L${whole}/lib -lterse_codecs`);
  });

  it.skipIf(noNm)(`exports what the header declares and nothing else, under the name of its ABI${noNm}`, () => {
    const shared = join(libraries, `libterse_codecs.so.${abiOfHeader()}`);
    const exported = [...run("nm", "-D", "--defined-only", shared).matchAll(/ [A-Z] (\w+)$/gm)].map(([, name]) => name);
    const declared = [...header().matchAll(/^TERSE_API [^(]*?(\w+)\(/gm)].map(([, name]) => name);
    expect(declared.length).toBeGreaterThan(10);
    expect(exported.sort()).toEqual(declared.sort());
    // With it, opening the library would round small floats to 0 in the whole program.
    expect(run("nm", shared)).not.toContain("set_fast_math");
  });
});

const header = (): string => readFileSync(join(root, "../include/terse/codecs.h"), "utf8");
const abiOfHeader = (): string => header().match(/#define TERSE_CODECS_ABI (\d+)/)![1]!;
