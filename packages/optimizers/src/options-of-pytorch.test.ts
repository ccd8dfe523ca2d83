/** Options whose names are PyTorch's, in camelCase, with PyTorch's defaults. */
import { parseOptions, type v } from "@terse/options";
import { expect, it } from "vitest";
import { needsPython, python, runPython } from "../../tensor/src/testing/python.ts";
import { muon, powersgd } from "./index.ts";

/** By PyTorch's name: our options, its arguments that we do not have, and its defaults that differ from ours. */
const options: Record<string, [schema: Schema, absent: readonly string[], others: Record<string, unknown>]> = {
  "torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook.PowerSGDState": [
    powersgd.options,
    // Absent: what only DDP's hook, Gram and Schmidt's method, logs or speed need.
    ["processGroup", "orthogonalizationEpsilon", "compressionStatsLoggingFrequency", "batchTensorsWithSameShape"],
    { startPowerSGDIter: 1000 },
  ],
  // Ours may be absent; null is "original".
  "torch.optim.Muon": [muon.options, ["params", "lr"], { nsSteps: 5, adjustLrFn: null }],
};

type Schema = v.GenericSchema & { readonly entries: object };

/** Ours that PyTorch has not. */
const own = ["nsType"];

it.skipIf(!python).each(Object.entries(options))(
  `of %s are its own${needsPython}`,
  async (name, [schema, absent, others]) => {
    const { signature } = await runPython(`
import inspect, json, torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook
defaults = {k: p.default for k, p in inspect.signature(${name}).parameters.items() if p.default is not p.empty}
names = list(inspect.signature(${name}).parameters)
outputs["signature"] = torch.tensor(list(json.dumps([names, defaults]).encode()))`);
    const bytes = (await signature!.toTypedArray()) as BigInt64Array;
    const [names, defaults] = JSON.parse(Buffer.from([...bytes].map(Number)).toString()) as [string[], object];
    const ours = parseOptions(schema, {}, "") as Record<string, unknown>;
    const theirs = Object.fromEntries(Object.entries(defaults).map(([key, value]) => [camelCase(key), value]));
    const shared = names.map(camelCase).filter((key) => !absent.includes(key));
    const keys = Object.keys(schema.entries).filter((key) => !own.includes(key));
    expect(keys.sort()).toEqual(shared.sort());
    for (const key of shared) expect(theirs[key], key).toEqual(key in others ? others[key] : ours[key]);
  },
);

const camelCase = (name: string) => name.replaceAll(/_([a-zA-Z])/g, (_, letter: string) => letter.toUpperCase());
