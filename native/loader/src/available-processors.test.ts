import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { availableProcessors, processorLimits } from "./available-processors.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "terse-processors-"));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** A machine's /proc and /sys, as files. */
function machine(files: Record<string, string>): void {
  for (const [name, text] of Object.entries({
    "proc/self/status": "Name:\tnode\nCpus_allowed_list:\t0-7\n",
    ...files,
  })) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), `${text}\n`);
  }
}

const unified = "41 31 0:38 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw";
const processors = () => availableProcessors(processorLimits(root));
const quotas = () => processorLimits(root).quotas.map(({ processors }) => processors);

describe("the processors that a process may use", () => {
  it("are the cores on which the kernel lets it run, without a quota", () => {
    machine({ "proc/self/status": "Cpus_allowed:\tff\nCpus_allowed_list:\t0-3,8,10-11\n" });
    expect(processorLimits(root)).toEqual({ cores: [0, 1, 2, 3, 8, 10, 11], quotas: [] });
    expect(processors()).toBe(7);
  });

  // docker run --cpus=2.5, with a cgroup namespace: the mount shows the container's own group.
  it("are as many as the quota of version 2 has whole ones", () => {
    machine({
      "proc/self/cgroup": "0::/",
      "proc/self/mountinfo": unified,
      "sys/fs/cgroup/cpu.max": "250000 100000",
    });
    expect([quotas(), processors()]).toEqual([[2.5], 2]);
    writeFileSync(join(root, "sys/fs/cgroup/cpu.max"), "max 100000\n");
    expect([quotas(), processors()]).toEqual([[], 8]);
    writeFileSync(join(root, "sys/fs/cgroup/cpu.max"), "20000 100000\n");
    expect([quotas(), processors()]).toEqual([[0.2], 1]);
  });

  // systemd: CPUQuota= of a slice above the service.
  it("are those of the tightest quota of all groups up to the root", () => {
    machine({
      "proc/self/cgroup": "0::/system.slice/a.service/inner",
      "proc/self/mountinfo": unified,
      "sys/fs/cgroup/system.slice/cpu.max": "300000 100000",
      "sys/fs/cgroup/system.slice/a.service/cpu.max": "max 100000",
      "sys/fs/cgroup/system.slice/a.service/inner/cpu.max": "50000 10000",
    });
    expect([quotas(), processors()]).toEqual([[5, 3], 3]);
  });

  // Debian 10, Amazon Linux 2; a hybrid machine mounts version 2 too, without the controller.
  it("are those of version 1, where cpu is mounted alone or with cpuacct", () => {
    machine({
      "proc/self/cgroup": "5:cpuset:/docker/1f2e\n4:cpu,cpuacct:/docker/1f2e\n0::/docker/1f2e",
      "proc/self/mountinfo": [
        "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw",
        "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset",
        "33 31 0:30 /docker/1f2e /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct",
      ].join("\n"),
      "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "150000",
      "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "50000",
    });
    expect([quotas(), processors()]).toEqual([[3], 3]);
    writeFileSync(join(root, "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us"), "-1\n");
    expect([quotas(), processors()]).toEqual([[], 8]);
  });

  it("are those of the mount point where the group's path lies outside of it", () => {
    machine({
      "proc/self/cgroup": "0::/../../kubepods/pod1/c",
      "proc/self/mountinfo": "41 31 0:38 /kubepods/pod1/c /sys/fs/cgroup rw - cgroup2 cgroup2 rw",
      "sys/fs/cgroup/cpu.max": "100000 100000",
    });
    expect(processors()).toBe(1);
  });

  it("are those of the affinity where the files say nothing that can be read", () => {
    for (const text of ["", "nonsense", "0 0", "-1 100000", "100000"]) {
      machine({
        "proc/self/cgroup": "0::/\nx\n7:",
        "proc/self/mountinfo": `${unified}\nx`,
        "sys/fs/cgroup/cpu.max": text,
      });
      expect([text, quotas(), processors()]).toEqual([text, [], 8]);
    }
  });

  it("share a quota under one name, whichever container asks", () => {
    machine({
      "proc/self/cgroup": "0::/pod/a",
      "proc/self/mountinfo": unified,
      "sys/fs/cgroup/pod/cpu.max": "400000 100000",
      "sys/fs/cgroup/pod/a/cpu.max": "100000 100000",
    });
    const [own, pod] = processorLimits(root).quotas;
    writeFileSync(join(root, "proc/self/cgroup"), "0::/pod\n");
    expect(processorLimits(root).quotas).toEqual([pod]);
    expect(own).not.toEqual(pod);
  });
});
