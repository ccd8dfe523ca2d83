import { parseOptions, v } from "@terse/options";
import { describe, expect, it } from "vitest";
import { Gpt } from "./gpt/gpt.ts";
import { continuesText } from "./model.ts";
import { countParameters, models, restoreModel } from "./models.ts";

const gpt = (given: object, data = {}) => {
  const options = parseOptions(v.object(models.gpt.options.entries), given, "model");
  return models.gpt.create(options, data) as Gpt;
};

describe("models", () => {
  it("makes a gpt of its preset, and single options override that", () => {
    expect(gpt({ preset: "nano" }).shape).toMatchObject({ context: 64, width: 64, layers: 2 });
    expect(gpt({ preset: "nano", layers: 1, context: undefined }).shape).toMatchObject({ context: 64, layers: 1 });
  });

  it("takes the length of the data's rows for its context, unless the context is given", () => {
    expect(gpt({ preset: "nano" }, { length: 32 }).context).toBe(32);
    expect(gpt({ preset: "nano", context: 48 }, { length: 32 }).context).toBe(48);
  });

  it("refuses a vocabulary smaller than the data's", () => {
    expect(() => gpt({ preset: "nano", vocabulary: 100 }, { vocabulary: 256 })).toThrow(
      "model.vocabulary: the data has 256 tokens, the model only 100; choose 256 or more",
    );
  });

  it("makes a model anew from its config", () => {
    const { config } = gpt({ preset: "nano", layers: 1 });
    const model = restoreModel(JSON.parse(JSON.stringify({ model_type: "gpt", ...config })));
    expect(model).toBeInstanceOf(Gpt);
    expect(model.config).toEqual(config);
    expect(continuesText(model)).toBe(true);
  });

  it.each([{}, { layers: 3, tied: true, vocabulary: 97 }])(
    "counts the parameters of a config without making the model: %o",
    (given) => {
      const model = gpt({ preset: "nano", ...given });
      expect(countParameters({ model_type: "gpt", ...model.config })).toBe(model.parameterCount());
      expect(countParameters({ model_type: "gpt", ...model.config, layers: 1e9 })).toBeGreaterThan(1e13);
    },
  );

  it.each([
    [{ model_type: "gtp" }, /model_type: unknown name "gtp"; did you mean gpt\?/],
    [{}, /model_type: unknown name undefined/],
    [{ model_type: "gpt", widht: 3 }, /did you mean width/],
  ])("says what is wrong with the config %o", (config, message) => {
    expect(() => restoreModel(config)).toThrow(message);
  });

  it("every model names a unit for each of its metrics", async () => {
    const model = gpt({ preset: "nano" });
    expect(model.metricUnits("byte")).toEqual({ loss: "nats per byte" });
  });
});
