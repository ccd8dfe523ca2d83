import type { Model } from "@terse/models";

export interface ParameterCounts {
  readonly parameters: number; // with those of an adapter
  readonly trained: number;
}

export function parameterCounts(model: Model): ParameterCounts {
  const trained = model.parameters().filter(({ requiresGrad }) => requiresGrad);
  return { parameters: model.parameterCount(), trained: trained.reduce((sum, { length }) => sum + length, 0) };
}

/** "134.98 M parameters, of which 460,800 are trained, 0.34 % (lora)" */
export function parametersText({ parameters, trained }: ParameterCounts, adapter: string | undefined): string {
  const all = `${(parameters / 1e6).toFixed(2)} M parameters`;
  if (adapter === undefined) return all;
  const share = Number(((100 * trained) / parameters).toPrecision(2));
  return `${all}, of which ${trained.toLocaleString("en-US")} are trained, ${share} % (${adapter})`;
}
