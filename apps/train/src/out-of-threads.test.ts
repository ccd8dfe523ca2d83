import { expect, it } from "vitest";
import { abortedForThreads, refusals } from "./out-of-threads.ts";
import { onMachine } from "./testing/kernel-files.ts";

/** The counter of a machine that has these files. */
const machine = (files: Record<string, string>) => onMachine(files, refusals);

// The files as the kernel's admin-guide/cgroup-v2.rst and cgroup-v1/pids.rst describe them.
const second = (count: number, max = "100") => ({
  "proc/self/cgroup": "0::/jobs/a\n",
  "sys/fs/cgroup/jobs/a/pids.events": `max ${count}\n`,
  "sys/fs/cgroup/jobs/a/pids.max": `${max}\n`,
});
const first = {
  "proc/self/cgroup": "5:devices:/\n4:cpu,pids:/jobs/a\n0::/\n",
  "sys/fs/cgroup/pids/jobs/a/pids.events": "max 3\n",
  "sys/fs/cgroup/pids/jobs/a/pids.max": "max\n",
};

it("reads the counter of both versions of control groups, and the limit where there is one", () => {
  expect(machine(second(2))).toEqual({ count: 2, limit: 100 });
  expect(machine(first)).toEqual({ count: 3, limit: undefined });
  const container = { "proc/self/cgroup": "0::/not/here\n", "sys/fs/cgroup/pids.events": "max 5\n" };
  expect(machine(container)).toMatchObject({ count: 5 });
});

it("says that no thread could be started where the counter has grown, and nothing otherwise", () => {
  expect(abortedForThreads(machine(second(2)), machine(second(3)))).toMatch(
    /^a thread could not be started, .* that its control group may have, 100, are there; raise that limit \(pids\.max/,
  );
  expect(abortedForThreads(machine(second(2)), machine(second(2)))).toBeUndefined();
  expect(abortedForThreads(machine({}), machine({}))).toBeUndefined();
});
