/** The methods that `bench convergence` trains, and what each changes in recipe.yaml. */

/**
 * How PyTorch's DDP sends gradients; or without DDP, after how many steps of each rank by itself PyTorch averages the
 * parameters.
 */
export type Hook = "none" | "fp16" | `powersgd ${number}` | `averages ${number}`;

export interface Method {
  readonly changes: readonly string[];
  /**
   * The rate where the search begins (settings.ts); or the method whose settings it takes, because only one option
   * differs.
   */
  readonly lr: number | string;
  /** Adam's family: β₂ is searched too. */
  readonly searchesBeta2?: boolean;
  /** Trained by PyTorch and torch.optim, not by us. */
  readonly hook?: Hook;
  /** Further changes while a few steps are timed, so that every kind of step is among them. */
  readonly timed?: readonly string[];
}

const optimizer = (name: string, ...options: readonly string[]) => [
  `optimizer.name=${name}`,
  ...options.map((option) => `optimizer.${option}`),
];
// Its authors: three to ten times AdamW's
const lion = (name: string, ...options: readonly string[]) => optimizer(name, "weightDecay=0.3", ...options);
const warmup = { timed: ["optimizer.warmup=4"] };
const adams = { searchesBeta2: true };
/** Matrix methods leave the other parameters to AdamW, at the rate that suits it here. */
const others = "groups=[{roles: [embedding, head, norm, vector], name: adamw, lr: 4e-3, weightDecay: 0.1}]";
const compressed = (gradient: string, ...options: readonly string[]) => [
  `exchange.gradient.name=${gradient}`,
  ...options.map((option) => `exchange.gradient.${option}`),
];
const muonWithPowersgd = [...optimizer("muon", others), ...compressed("powersgd", "matrixApproximationRank=8")];
const dion = (...options: readonly string[]) => optimizer("dion", "weightDecay=0.01", others, ...options);

export const methods: Readonly<Record<string, Method>> = {
  adamw: { changes: optimizer("adamw"), lr: 4e-3, ...adams },
  "pytorch-ddp": { changes: optimizer("adamw"), lr: "adamw", hook: "none" },
  "pytorch-ddp-fp16": { changes: optimizer("adamw"), lr: "adamw", hook: "fp16" },
  "pytorch-ddp-powersgd-2": { changes: optimizer("adamw"), lr: 1e-3, ...adams, hook: "powersgd 2" },
  "pytorch-ddp-powersgd-8": { changes: optimizer("adamw"), lr: 1e-3, ...adams, hook: "powersgd 8" },
  sgd: { changes: optimizer("sgd", "momentum=0.9", "weightDecay=0"), lr: 0.125 },
  signsgd: { changes: optimizer("signsgd", "weightDecay=0"), lr: 4e-3 },
  signum: { changes: optimizer("signum", "weightDecay=0"), lr: 5e-4 },
  lion: { changes: lion("lion"), lr: 5e-4 },
  "lion-bf16": { changes: [...lion("lion"), "exchange.dense=bf16"], lr: "lion" },
  "lion-int8": { changes: [...lion("lion"), "exchange.dense=int8"], lr: "lion" },
  "lion-beta-0.95": { changes: lion("lion", "beta2=0.95"), lr: 5e-4 },
  "distributed-lion": { changes: lion("distributed-lion"), lr: 1e-3 },
  "distributed-lion-average": { changes: lion("distributed-lion", "vote=average"), lr: 5e-4 },
  "lion-cub": { changes: lion("lion-cub"), lr: 5e-4 },
  "lion-cub-clip-previous": { changes: lion("lion-cub", "clipBy=previous"), lr: "lion-cub" },
  "lion-cub-zero-hold": { changes: lion("lion-cub", "zero=hold"), lr: "lion-cub" },
  "lion-cub-ties-minus": { changes: lion("lion-cub", "tie=minus"), lr: "lion-cub" },
  "lion-cub-beta-0.95": { changes: lion("lion-cub", "beta2=0.95"), lr: 5e-4 },
  "lion-cub-beta-0.95-sync": {
    changes: lion("lion-cub", "beta2=0.95", "momentumSync.segments=first-and-last", "momentumSync.every=10"),
    lr: "lion-cub-beta-0.95",
    timed: ["optimizer.momentumSync.every=3"],
  },
  "lion-cub-8-bits": { changes: lion("lion-cub", "bits=8"), lr: "lion-cub" },
  "lion-cub-8-bits-beta-0.95": {
    changes: lion("lion-cub", "bits=8", "beta2=0.95"),
    lr: "lion-cub-beta-0.95",
  },
  lamb: { changes: optimizer("lamb"), lr: 0.03, ...adams },
  "one-bit-adam": { changes: optimizer("one-bit-adam", "warmup=80"), lr: 5e-4, ...adams, ...warmup },
  "one-bit-lamb": { changes: optimizer("one-bit-lamb", "warmup=80"), lr: 0.03, ...adams, ...warmup },
  "one-bit-lamb-clip-previous": {
    changes: optimizer("one-bit-lamb", "warmup=80", "clipBy=previous"),
    lr: "one-bit-lamb",
    ...warmup,
  },
  "zero-one-adam": {
    changes: optimizer("zero-one-adam", "freeze=80", "doubling=80", "localSteps=4"),
    lr: 5e-4,
    ...adams,
    timed: ["optimizer.freeze=3", "optimizer.doubling=2"],
  },
  muon: { changes: optimizer("muon", others), lr: 0.02 },
  "pytorch-ddp-muon": { changes: optimizer("muon", others), lr: "muon", hook: "none" },
  "pytorch-ddp-muon-fp16": { changes: optimizer("muon", others), lr: "muon", hook: "fp16" },
  "pytorch-local-sgd-muon-5": { changes: optimizer("muon", others), lr: "muon", hook: "averages 5" },
  "pytorch-local-sgd-muon-10": { changes: optimizer("muon", others), lr: "muon", hook: "averages 10" },
  "muon-powersgd-8": { changes: muonWithPowersgd, lr: 0.02 },
  "pytorch-ddp-muon-powersgd-8": { changes: muonWithPowersgd, lr: "muon-powersgd-8", hook: "powersgd 8" },
  dion: { changes: dion("rank=0.25"), lr: 0.01 },
  "dion-rank-0.125": { changes: dion("rank=0.125"), lr: "dion" },
  "dion-rank-full": { changes: dion("rank=full"), lr: "dion" },
  "dion-no-error-feedback": { changes: dion("rank=0.25", "errorFeedback=false"), lr: "dion" },
  "dion-svd": { changes: dion("rank=0.25", "approximate=svd"), lr: "dion" },
  demo: { changes: optimizer("demo", "weightDecay=0"), lr: 2e-3 },
  "adamw-powersgd-2": {
    changes: [...optimizer("adamw"), ...compressed("powersgd", "matrixApproximationRank=2")],
    lr: 1e-3,
    ...adams,
  },
  "adamw-powersgd-8": {
    changes: [...optimizer("adamw"), ...compressed("powersgd", "matrixApproximationRank=8")],
    lr: 1e-3,
    ...adams,
  },
  "adamw-qsgd": { changes: [...optimizer("adamw"), ...compressed("qsgd")], lr: 8e-3, ...adams },
  "adamw-terngrad": { changes: [...optimizer("adamw"), ...compressed("terngrad")], lr: 8e-3, ...adams },
  "adamw-graddrop": { changes: [...optimizer("adamw"), ...compressed("graddrop")], lr: 4e-3, ...adams },
  "sgd-dgc": {
    changes: [...optimizer("sgd", "weightDecay=0"), ...compressed("dgc", "ratio=0.01", "momentum=0.9")],
    lr: 0.25,
  },
  "sgd-ef-signsgd": { changes: [...optimizer("sgd", "weightDecay=0"), ...compressed("ef-signsgd")], lr: 0.25 },
  "lamb-basic-one-bit": { changes: optimizer("lamb-basic-one-bit", "warmup=80"), lr: "one-bit-lamb", ...warmup },
};

/** The method whose settings a method takes; itself where it searches. */
export function settingsOwner(name: string): string {
  const { lr } = methods[name]!;
  return typeof lr === "string" ? lr : name;
}

/** Steps between two messages of a method whose ranks train by themselves meanwhile. */
export const intervalOf = (hook: Hook | undefined): number | undefined =>
  hook?.startsWith("averages ") ? Number(hook.split(" ")[1]) : undefined;
