import { expect, it } from "vitest";
import { killedForMemory, memoryKills } from "./out-of-memory.ts";
import { onMachine } from "./testing/kernel-files.ts";

/** The counters of a machine that has these files. */
const machine = (files: Record<string, string>) => onMachine(files, memoryKills);

// The files as cgroups(7), the kernel's admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst describe them.
const second = (kills: number) => ({
  "proc/self/cgroup": "0::/jobs/a\n",
  "sys/fs/cgroup/jobs/a/memory.events": `low 0\nhigh 0\nmax 12\noom 3\noom_kill ${kills}\noom_group_kill 0\n`,
  "sys/fs/cgroup/jobs/a/memory.max": "536870912\n",
});
const first = (kills: number) => ({
  "proc/self/cgroup": "5:devices:/\n4:cpu,memory:/jobs/a\n0::/\n",
  "sys/fs/cgroup/memory/jobs/a/memory.oom_control": `oom_kill_disable 0\nunder_oom 0\noom_kill ${kills}\n`,
  "sys/fs/cgroup/memory/jobs/a/memory.limit_in_bytes": "9223372036854771712\n",
});

it("reads the counters of both versions of control groups, and the limit where there is one", () => {
  expect(machine(second(2))).toEqual({ group: 2, machine: undefined, limit: 2 ** 29 });
  expect(machine(first(3))).toEqual({ group: 3, machine: undefined, limit: undefined });
  expect(machine({ "proc/vmstat": "nr_free_pages 7\noom_kill 4\n" })).toEqual({
    group: undefined,
    machine: 4,
    limit: undefined,
  });
  const container = { "proc/self/cgroup": "0::/not/here\n", "sys/fs/cgroup/memory.events": "oom_kill 5\n" };
  expect(machine(container)).toMatchObject({ group: 5 });
});

it("says that memory was used up where a counter has grown, and how sure that is", () => {
  expect(killedForMemory(machine(second(2)), machine(second(3)))).toMatch(
    /^the kernel killed it because the memory of its control group, whose limit is 512 MiB, was used up; take a smaller/,
  );
  const vmstat = (kills: number) => machine({ "proc/vmstat": `oom_kill ${kills}\n` });
  expect(killedForMemory(vmstat(0), vmstat(1))).toMatch(/^probably .* the memory of this machine was used up/);
});

it("says nothing where no counter has grown, or none can be read", () => {
  expect(killedForMemory(machine(second(2)), machine(second(2)))).toBeUndefined();
  expect(killedForMemory(machine({}), machine({}))).toBeUndefined();
});
