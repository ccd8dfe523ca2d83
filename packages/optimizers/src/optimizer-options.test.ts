import { loopback } from "@terse/collectives";
import { Arena, Linear, ones, scope, zeros } from "@terse/tensor";
import { describe, expect, it, vi } from "vitest";
import { adamw, LocalSteps, Optimizer, type OptimizerOptions, sgd } from "./index.ts";

function make(options: object): { arena: Arena; model: Linear; optimizer: Optimizer } {
  const model = new Linear(4, 4);
  const arena = new Arena(model);
  return { model, arena, optimizer: new Optimizer(arena, loopback(1)[0]!, options as OptimizerOptions) };
}

describe("the options of an optimizer", () => {
  it.each<[options: object, error: string]>([
    [{}, "Optimizer.algorithm: expected an algorithm, as adamw() and lionCub() make them"],
    [{ algorithm: adamw }, "Optimizer.algorithm: expected an algorithm"],
    [{ algorithm: "adamw" }, "Optimizer.algorithm: expected an algorithm"],
    [{ algorithm: adamw(), clp: 1 }, "Optimizer.clp: unknown option; did you mean clip?"],
    [{ algorithm: adamw(), clip: -1 }, "Optimizer.clip: expected a number ≥ 0, got -1"],
    [{ algorithm: adamw(), clip: Number.NaN }, "Optimizer.clip: expected a number ≥ 0, got NaN"],
    [{ algorithm: adamw(), clipBy: "norm" }, "Optimizer.clipBy: expected one of global, bucket, previous"],
    [{ algorithm: adamw(), overlap: true }, "Optimizer.overlap: expected one of auto, on, off, got true"],
    [{ algorithm: adamw(), bucket: 0 }, 'Optimizer.bucket: expected a number > 0 or "auto", got 0'],
    [{ algorithm: adamw(), compareEvery: 0.5 }, "Optimizer.compareEvery: expected an integer ≥ 0, got 0.5"],
    [{ algorithm: adamw(), schemes: { mean: "bf16" } }, "Optimizer.schemes.mean: unknown option; did you mean means?"],
    [
      { algorithm: adamw(), schemes: { means: "bf16" } },
      "Optimizer.schemes.means: expected a scheme, as dense() makes it",
    ],
    [
      { algorithm: adamw(), groups: [{ match: "norm", algorithm: sgd() }] },
      'Optimizer.groups.0.match: expected a function of a segment, such as ({ role }) => role === "norm"',
    ],
    [{ algorithm: adamw(), groups: [{ match: () => true }] }, "Optimizer.groups.0.algorithm: expected an algorithm"],
  ])("are refused by name: %j", (options, error) => {
    expect(() => make(options)).toThrow(error);
  });

  it("follow an arena and one group", () => {
    const model = new Linear(4, 4);
    const [group, options] = [loopback(1)[0]!, { algorithm: adamw() }];
    expect(() => new Optimizer(model as never, group, options)).toThrow("new Arena(model)");
    expect(() => new Optimizer(new Arena(model), loopback(2) as never, options)).toThrow("must be one group");
  });

  it("are checked for both steps of local steps", () => {
    const arena = new Arena(new Linear(4, 4));
    const options = { outerLr: 0.7, syncEvery: 2, inner: { algorithm: adamw() } };
    const group = loopback(1)[0]!;
    expect(() => new LocalSteps(arena, group, { ...options, inner: adamw(), outer: sgd() } as never)).toThrow(
      /^LocalSteps\.inner: expected the options of an Optimizer, such as \{ algorithm: adamw\(\) \}$/,
    );
    expect(
      () => new LocalSteps(arena, group, { ...options, outer: { algorithm: sgd() }, rebas: true } as never),
    ).toThrow("LocalSteps: there is no option rebas (known: inner");
    const outer = { algorithm: sgd(), clip: Number.NaN };
    expect(() => new LocalSteps(arena, loopback(1)[0]!, { ...options, outer })).toThrow("clip: expected a number ≥ 0");
  });
});

describe("the calls of an optimizer", () => {
  it("refuse an unknown option and none, and what are no saves", async () => {
    const { optimizer } = make({ algorithm: sgd() });
    await expect(optimizer.step({ lr: 1, los: 2 } as never)).rejects.toThrow("step: there is no option los (known: lr");
    await expect(optimizer.begin({ lr: 1, los: 2 } as never)).rejects.toThrow("begin: there is no option los");
    await expect(optimizer.step(undefined as never)).rejects.toThrow("lr: expected a number ≥ 0");
    const restored = (...saves: unknown[]) => expect(optimizer.restore(...(saves as [number, []]))).rejects;
    await restored().toThrow("restore: expected the number of steps that the saves were made after, got undefined");
    for (const none of [undefined, {}, []]) await restored(1, none).toThrow("restore: there are no saves; give a list");
    await restored(1, [{}]).toThrow("restore: the save of rank 0 is no state");
    const { tensors } = await make({ algorithm: adamw() }).optimizer.state();
    await restored(1, [{ tensors: new Map(tensors), scalars: {} }]).toThrow("in the save of rank 0, is no typed array");
  });

  it.each(["0.1", null, undefined, [0.1]])("refuse a learning rate that is no number: %j", async (lr) => {
    const { optimizer } = make({ algorithm: sgd() });
    await expect(optimizer.begin({ lr: lr as never })).rejects.toThrow("lr: expected a number ≥ 0 as a 32-bit float");
    await expect(optimizer.step({ lr: lr as never })).rejects.toThrow("lr: expected a number ≥ 0 as a 32-bit float");
  });

  it.each([
    ["a tensor", zeros([]), "a Tensor"],
    ["a string", "0.1", '"0.1"'],
    ["null", null, "null"],
  ])("refuse a loss that is %s, where the ranks were told that it is not finite", async (_, loss, shown) => {
    const { optimizer } = make({ algorithm: sgd() });
    const message = `loss: expected a number (of a tensor: loss.item()), got ${shown}`;
    for (const call of ["begin", "step"] as const)
      await expect(optimizer[call]({ lr: 1, loss: loss as never })).rejects.toThrow(message);
  });

  it.each([["off"], ["auto"]] as const)(
    "refuse a step before the last one has ended, with overlap %s",
    async (overlap) => {
      const notEnded = "the step before has not ended: await its step";
      const { arena, optimizer } = make({ algorithm: adamw(), overlap });
      const first = optimizer.step({ lr: 1 });
      await expect(optimizer.step({ lr: 1 })).rejects.toThrow(notEnded);
      await expect(optimizer.begin({ lr: 1 })).rejects.toThrow(notEnded);
      await first;
      expect(optimizer.steps).toBe(1);

      await optimizer.begin({ lr: 1 });
      arena.gradients.fill_(0);
      const second = optimizer.step({ lr: 1 });
      await expect(optimizer.step({ lr: 1 })).rejects.toThrow(notEnded);
      await second;
      expect(optimizer.steps).toBe(2);
    },
  );

  it("refuse a step while the ranks still compare their parameters after the last one", async () => {
    const { optimizer } = make({ algorithm: adamw(), compareEvery: 1 });
    let second: Promise<unknown> | undefined;
    vi.spyOn(optimizer, "compare").mockImplementationOnce(async () => {
      second = optimizer.step({ lr: 1 });
      await second.catch(() => {});
    });
    await optimizer.step({ lr: 1 });
    await expect(second).rejects.toThrow("the step before has not ended: await its step");
    await optimizer.step({ lr: 1 });
    expect(optimizer.steps).toBe(2);
  });

  it.each([["off"], ["auto"]] as const)(
    "refuse a step before its backward has ended, with overlap %s",
    async (overlap) => {
      const unfinished = "a backward has not ended, and its gradients would be taken unfinished";
      const { model, optimizer } = make({ algorithm: sgd(), overlap });
      const loss = () => model.forward(ones([1, 4])).sum();
      const first = loss().backward();
      const calls = [optimizer.step({ lr: 1 }), optimizer.begin({ lr: 1 })];
      for (const call of calls) await expect(call).rejects.toThrow(unfinished);
      await first;
      await optimizer.begin({ lr: 1 });
      const second = loss().backward();
      await expect(optimizer.step({ lr: 1 })).rejects.toThrow(unfinished);
      await second;
      await optimizer.step({ lr: 1 });
      expect(optimizer.steps).toBe(1);
    },
  );

  it("refuse a step whose loss was not finite at its beginning, also where no message leaves early", async () => {
    const { model, arena, optimizer } = make({ algorithm: sgd() });
    await scope(() =>
      model
        .forward(arena.parameters.narrow(0, 0, 4))
        .sum()
        .backward(),
    );
    await optimizer.begin({ lr: 0.1, loss: Number.NaN });
    await expect(optimizer.begin({ lr: 0.1 })).rejects.toThrow("call step after each begin");
    await expect(optimizer.step({ lr: 0.1 })).rejects.toThrow("the loss is not finite");
  });

  it("take the learning rate that the step began with", async () => {
    const { model, arena, optimizer } = make({ algorithm: sgd() });
    arena.parameters.fill_(0);
    await optimizer.begin({ lr: 0.5 });
    await scope(() => model.bias!.sum().backward());
    await optimizer.step({ lr: 4 });
    expect(await model.bias!.toTypedArray()).toEqual(Float32Array.of(-0.5, -0.5, -0.5, -0.5));
  });

  it("are refused after close, which may be called again", async () => {
    const { optimizer } = make({ algorithm: sgd() });
    await optimizer.close();
    await optimizer.close();
    await expect(optimizer.begin({ lr: 0.1 })).rejects.toThrow("the optimizer is closed");
    await expect(optimizer.step({ lr: 0.1 })).rejects.toThrow("the optimizer is closed");
  });
});
