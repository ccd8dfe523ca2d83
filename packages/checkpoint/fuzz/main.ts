/**
 * Damages headers of safetensors files, indices and manifests. Each must be read correctly or refused in one line:
 *
 *   node --conditions=@terse/source packages/checkpoint/fuzz/main.ts [header|index|manifest] [RUNS] [SEED]
 */
import { fuzz, makeTargets } from "./targets.ts";

const [name = "header", runs = "1000000", seed = "1"] = process.argv.slice(2);
const targets = await makeTargets();
const target = targets[name];
if (!target) {
  console.error(`error: there is no target ${name}: ${Object.keys(targets).join(", ")}`);
  process.exit(2);
}
const began = performance.now();
const { accepted, refused } = fuzz(target, Number(runs), Number(seed));
console.log(`${name}: ${runs} executions in ${((performance.now() - began) / 1000).toFixed(0)} s, nothing found`);
console.log(`${accepted} accepted`);
for (const [kind, count] of [...refused].sort(([, a], [, b]) => b - a).slice(0, 30)) console.log(`${count} ${kind}`);
