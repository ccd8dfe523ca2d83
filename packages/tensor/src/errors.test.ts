import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { arange, call, embedding, full, manualSeed, ones, randn, scope, TensorError, tensor, zeros } from "./index.ts";

describe("an error of libtorch", () => {
  it("has the operator, the dtypes and shapes of its tensors, and libtorch's message without the C++ trace", () =>
    scope(() => {
      let error: Error | undefined;
      try {
        ones([2, 3]).mm(ones([4, 5], { dtype: "f64" }));
      } catch (caught) {
        error = caught as Error;
      }
      expect(error).toBeInstanceOf(TensorError);
      expect(error!.name).toBe("TensorError");
      expect(error!.message).toMatch(/^aten::mm\(self: f32\[2, 3\], mat2: f64\[4, 5\]\): /);
      expect(error!.message).not.toMatch(/frame #|Exception raised from/);
      expect(error!.cause).toMatch(/Exception raised from/);
    }));

  it("has the tensors in lists, and not the optional tensors that are null", () =>
    scope(() => {
      expect(() => call("aten::cat", [ones([2, 3]), ones([4])], 0)).toThrow(
        /^aten::cat\(tensors: \[f32\[2, 3\], f32\[4\]\]\): /,
      );
      expect(() => call("aten::linear", ones([2, 3]), ones([4, 4]), null)).toThrow(
        /^aten::linear\(input: f32\[2, 3\], weight: f32\[4, 4\]\): /,
      );
    }));

  it("says how much memory was asked for where there is too little", () =>
    scope(() => {
      expect(() => zeros([2 ** 44])).toThrow(/: there is not enough memory for a tensor of 70\.4 TB$/);
    }));

  it("says that no thread can be started for backward, which can be called again later", () => {
    const program = `
      import { spawnSync } from "node:child_process";
      import { readFileSync } from "node:fs";
      import { tensor } from ${JSON.stringify(join(import.meta.dirname, "index.ts"))};
      const limit = (bytes) => spawnSync("prlimit", ["--pid=" + process.pid, "--as=" + bytes + ":"]);
      const x = tensor([1, 2], { requiresGrad: true });
      const loss = x.mul(x).sum();
      const [, used] = /VmSize:\\s+(\\d+)/.exec(readFileSync("/proc/self/status", "utf8"));
      limit(used * 1024 + 2 ** 20); // a thread's stack takes more
      let said;
      try {
        await loss.backward();
      } catch (error) {
        said = error.message;
      }
      limit("unlimited");
      await x.mul(x).sum().backward();
      console.log(said, ...(await x.grad.toTypedArray()));`;
    const { stdout, stderr } = spawnSync(
      process.execPath,
      ["--conditions=@terse/source", "--no-warnings", "--input-type=module", "-e", program],
      { encoding: "utf8", cwd: import.meta.dirname },
    );
    expect(stdout + stderr).toMatch(
      /^backward: no thread can be started \(Resource temporarily unavailable\): allow more .* 2 4\n$/,
    );
  });

  it("is also thrown for an error on a worker thread: an index outside the table", () =>
    scope(() => {
      expect(() => embedding(full([5000], 99, { dtype: "i64" }), randn([10, 64]))).toThrow(
        /aten::embedding.*index out of range/,
      );
    }));
});

describe("a wrong argument", () => {
  const x = ones([2]);

  it.each<[string, () => unknown, RegExp]>([
    [
      "a number for a tensor",
      () => call("aten::add.Tensor", x, 3),
      /aten::add\.Tensor.*"other": expected a tensor, got 3/,
    ],
    ["a string for a tensor", () => call("aten::neg", "x"), /aten::neg: argument "self": expected a tensor, got "x"/],
    ["null for a tensor", () => call("aten::neg", null), /expected a tensor, got null/],
    ["nothing for a tensor", () => call("aten::neg"), /argument "self" is missing: expected a tensor/],
    ["a fraction for an int", () => x.unsqueeze(0.5), /"dim": expected an integer, got 0.5/],
    ["infinity for an int", () => x.unsqueeze(Number.POSITIVE_INFINITY), /expected an integer, got Infinity/],
    ["2^64 for an int", () => x.unsqueeze(2 ** 64), /expected an integer/],
    ["a bigint beyond 64 bits", () => call("aten::unsqueeze", x, 2n ** 70n), /expected an integer, got a bigint/],
    ["a number for a list", () => call("aten::view", x, 2), /"size": expected an array of integers, got 2/],
    [
      "a string in a list",
      () => call("aten::view", x, ["2"] as never),
      /"size": expected an array of integers, got "2"/,
    ],
    ["a number for a bool", () => call("aten::sum.dim_IntList", x, [0], 1), /"keepdim": expected true or false, got 1/],
    ["an unknown dtype", () => zeros([1], { dtype: "f23" as never }), /unknown dtype "f23"; known: u8, i8/],
    ["an unknown device", () => zeros([1], { device: "gpu" }), /aten::zeros: .*gpu/],
    [
      "another kind of device",
      () => zeros([1], { device: "xla" }),
      /device "xla" is not supported: use "cpu" or "cuda:0"/,
    ],
    ["an unknown memory format", () => call("aten::contiguous", x, "rows"), /unknown memory format "rows"/],
    [
      "a generator",
      () => call("aten::randn.generator", [1], 5),
      /expected null: only the default generator is supported/,
    ],
    ["too many arguments", () => call("aten::neg", x, 1), /aten::neg.*takes 1 arguments, got 2/],
    ["an array-like object for a list", () => call("aten::view", x, { length: 1, 0: 2 } as never), /got an object/],
  ])("%s: the error names the argument and the expected type", (_, wrong, message) => {
    expect(wrong).toThrow(message);
  });

  it.each<[string, () => unknown, string]>([
    [
      "300 for u8",
      () => tensor([1, 300], { dtype: "u8" }),
      "300 does not fit u8, which has whole numbers from 0 to 255",
    ],
    ["−1 for u8", () => tensor(-1, { dtype: "u8" }), "-1 does not fit u8"],
    [
      "128 for i8",
      () => tensor([[128]], { dtype: "i8" }),
      "128 does not fit i8, which has whole numbers from -128 to 127",
    ],
    ["2^15 for i16", () => tensor([2 ** 15], { dtype: "i16" }), "32768 does not fit i16"],
    ["2^31 for i32", () => tensor([2 ** 31], { dtype: "i32" }), "2147483648 does not fit i32"],
    ["2^63 for i64", () => tensor([2 ** 63], { dtype: "i64" }), "does not fit i64"],
    ["a bigint beyond i64", () => tensor([2n ** 70n], { dtype: "i64" }), "1180591620717411303424 does not fit i64"],
    ["a bigint beyond u8", () => tensor([256n], { dtype: "u8" }), "256 does not fit u8"],
    ["NaN for an integer", () => tensor([Number.NaN], { dtype: "i32" }), "NaN does not fit i32"],
    ["infinity for an integer", () => tensor(Number.POSITIVE_INFINITY, { dtype: "i64" }), "Infinity does not fit i64"],
    ["a string", () => tensor("a" as never), 'tensor: expected numbers, booleans or nested arrays of them, got "a"'],
    ["a string in a row", () => tensor([[1, "2"]] as never), 'got "2"; convert it first'],
    ["null", () => tensor([null] as never), "got null"],
    ["nothing", () => tensor(undefined as never), "got a value of type undefined"],
    ["an object", () => tensor({} as never), "got a value of type object"],
    ["a tensor", () => tensor(x as never), "got a value of type object"],
    [
      "a string as an operand",
      () => x.add("x" as never),
      'expected a tensor (or a number, where the method takes one), got "x"',
    ],
    ["an object as an operand", () => x.mul({} as never), "got an object; tensor() and fromTypedArray() make tensors"],
    ["nothing as an operand", () => x.matmul(undefined as never), "got undefined"],
    ["an array as an operand", () => x.sub([1, 2] as never), "got an array"],
    [
      "a clone",
      () => structuredClone({ weights: [x] }),
      "a tensor cannot be cloned, posted to another thread or written",
    ],
    ["a posted tensor", () => new MessageChannel().port1.postMessage(x), "give await x.toTypedArray() instead"],
    ["JSON of a tensor", () => JSON.stringify({ x }), "a tensor cannot be cloned, posted to another thread or written"],
  ])("%s: a TypeError that says what to do", (_, wrong, message) => {
    expect(wrong).toThrow(TypeError);
    expect(wrong).toThrow(message);
  });

  it("takes the extreme values of each integer dtype, and cuts fractions off", () =>
    scope(async () => {
      expect(await tensor([0, 255, 1.9, 255.5, -0.5], { dtype: "u8" }).toTypedArray()).toEqual(
        Uint8Array.of(0, 255, 1, 255, 0),
      );
      expect(await tensor([-128, 127, -128.9], { dtype: "i8" }).toTypedArray()).toEqual(Int8Array.of(-128, 127, -128));
      expect(await tensor([-(2n ** 63n), 2n ** 63n - 1n, 2 ** 60], { dtype: "i64" }).toTypedArray()).toEqual(
        BigInt64Array.of(-(2n ** 63n), 2n ** 63n - 1n, 2n ** 60n),
      );
      expect(await tensor([true, 2n]).toTypedArray()).toEqual(Float32Array.of(1, 2));
    }));

  it("a seed that does not fit 64 bits is refused", () => {
    expect(() => manualSeed(2n ** 70n)).toThrow("a seed must fit 64 bits");
    manualSeed(2n ** 64n - 1n);
    manualSeed(-(2n ** 63n));
  });

  it("that throws when it is read passes its error on, and the next call works", () => {
    const trap = new Proxy([2], {
      get(target, key) {
        if (key === "0") throw new Error("trap");
        return Reflect.get(target, key);
      },
    });
    expect(() => call("aten::view", x, trap)).toThrow("trap");
    expect(x.view(2, 1).shape).toEqual([2, 1]);
  });

  it("that calls another operator when it is read does not disturb the first", () =>
    scope(() => {
      const nested = new Proxy([1, 2], {
        get(target, key) {
          if (key === "1")
            return (
              x
                .add(ones([2]))
                .sum()
                .item() / 2
            );
          return Reflect.get(target, key);
        },
      });
      expect(call("aten::view", x, nested).shape).toEqual([1, 2]);
    }));
});

describe("extreme sizes and values", () => {
  it.each([[[2 ** 45]], [[2 ** 31, 2 ** 31]], [[2 ** 52, 2 ** 52]], [[-1]]])(
    "zeros(%j) is an error, not a crash",
    (shape) => {
      expect(() => zeros(shape)).toThrow(TensorError);
    },
  );

  it("empty tensors work with every kind of operator", () =>
    scope(async () => {
      const x = zeros([0, 3]);
      expect(x.add(1).mul(x).shape).toEqual([0, 3]);
      expect(x.sum().item()).toBe(0);
      expect(x.mean().item()).toBeNaN();
      expect(x.mm(ones([3, 2])).shape).toEqual([0, 2]);
      expect(
        ones([2, 0])
          .mm(ones([0, 2]))
          .sum()
          .item(),
      ).toBe(0);
      expect(await x.toTypedArray()).toEqual(new Float32Array(0));
      expect(() => x.max()).toThrow(/aten::max\(self: f32\[0, 3\]\)/);
      expect(() => x.item()).toThrow(/0 elements/);
      const leaf = zeros([0, 3], { requiresGrad: true });
      await leaf.sum().backward();
      expect(leaf.grad!.shape).toEqual([0, 3]);
    }));

  it("division by zero is an error for integers and infinity for floats, never a signal", () =>
    scope(() => {
      expect(() => arange(3).div(0, { rounding: "floor" })).toThrow(/ZeroDivisionError/);
      expect(tensor([1]).div(0).item()).toBe(Number.POSITIVE_INFINITY);
    }));

  it("an unavailable CUDA device is a TensorError that says why", () => {
    try {
      zeros([1], { device: "cuda" }).dispose();
    } catch (error) {
      expect(error).toBeInstanceOf(TensorError);
      // Without a GPU: no libtorch_cuda.so, a missing library of its own, no driver, or backward that has run before.
      expect((error as Error).message).toMatch(
        /^aten::zeros: (no CUDA device can be used: .*libtorch_cuda\.so|.*CUDA|.*NVIDIA)/s,
      );
    }
  });
});
