import { readFileSync } from "node:fs";
import { joinWorld } from "@terse/collectives";
import { serve } from "../hosts/serve.ts";
const world = await joinWorld();
const snmp = () => { const l = readFileSync("/proc/net/snmp", "utf8").split("\n").filter((x) => x.startsWith("Tcp:")); const k = l[0]!.split(" "), v = l[1]!.split(" "); return Object.fromEntries(k.map((x, i) => [x, Number(v[i])])); };
const ext = () => { const l = readFileSync("/proc/net/netstat", "utf8").split("\n").filter((x) => x.startsWith("TcpExt:")); const k = l[0]!.split(" "), v = l[1]!.split(" "); return Object.fromEntries(k.map((x, i) => [x, Number(v[i])])); };
await serve({
  async run({ n, times }: { n: number; times: number }) {
    const parts = () => Array.from({ length: world.size }, () => new Uint8Array(n));
    const a = parts(), b = parts();
    const ms: string[] = [];
    const s0 = snmp(), e0 = ext();
    for (let i = 0; i < times; i++) {
      await world.barrier();
      const t0 = performance.now();
      await world.allToAll(a, b);
      const t1 = performance.now();
      await world.allGather(a);
      ms.push(`${(t1 - t0).toFixed(0)}+${(performance.now() - t1).toFixed(0)}`);
    }
    const s1 = snmp(), e1 = ext();
    const diff = Object.fromEntries(Object.keys(e1).filter((k) => e1[k]! !== e0[k]! && /Retrans|Timeout|Slow|Loss|Spur|Recover|Drop|Full|Zero|DSACK/.test(k)).map((k) => [k, e1[k]! - e0[k]!]));
    return { ms, retrans: s1["RetransSegs"]! - s0["RetransSegs"]!, out: s1["OutSegs"]! - s0["OutSegs"]!, diff };
  },
  async close() { await world.close(); },
});
