import { Hosts } from "../hosts/hosts.ts";
const [hostsN, rate, ...sizes] = process.argv.slice(2);
await using hosts = await Hosts.open({ hosts: Number(hostsN), rate: rate === "none" ? undefined : rate, program: new URL("./try-host.ts", import.meta.url) });
for (const n of sizes) console.log(n, JSON.stringify(await hosts.ask({ do: "run", n: Number(n), times: 6 }), null, 0));
await hosts.ask({ do: "close" });
