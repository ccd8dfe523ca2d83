/** What `./terse bench` can measure. */
import { app } from "./app/app.ts";
import { codecs } from "./codecs/codecs.ts";
import { collectives } from "./collectives/collectives.ts";
import { convergence } from "./convergence/convergence.ts";
import { costModel } from "./cost-model/cost-model.ts";
import { exchange } from "./exchange/exchange.ts";
import { gpu } from "./gpu/gpu.ts";
import { local } from "./local/local.ts";
import { models } from "./models/models.ts";
import { optimizers } from "./optimizers/optimizers.ts";
import { papersSuite } from "./papers/papers.ts";
import { recipe } from "./recipe/recipe.ts";
import { step } from "./step/step.ts";
import type { Suite } from "./suite.ts";
import { train } from "./train/train.ts";

export const suites: Record<string, Suite> = {
  app,
  step: { step },
  codecs: { codecs },
  collectives,
  convergence,
  "cost-model": costModel,
  exchange,
  gpu,
  local,
  models,
  optimizers,
  papers: papersSuite,
  recipe,
  train,
};

export const subjects: Record<keyof typeof suites, string> = {
  app: "what page and traces cost; errors of the advice; recovery",
  step: "what a training step costs, compared with PyTorch",
  codecs: "encoding and decoding, compared with the speed of memory",
  collectives: "the share of an emulated link that they use, and latencies",
  convergence: "losses of every method by steps, bytes and seconds",
  "cost-model": "predicted and measured times of exchanges",
  exchange: "the time of an exchange, compared with Gloo and PyTorch",
  gpu: "kernels and training on a GPU, compared with PyTorch",
  local: "losses of local steps with an outer step, by what a round sends",
  models: "steps, data and files of models compared with PyTorch; real runs",
  optimizers: "the local work of a step, compared with PyTorch and with memory",
  papers: "every figure and table of the four papers, and a verdict for each",
  recipe: "losses of gpt-small with few bits and with 32",
  train: "the small GPT on slow links, compared with PyTorch's DDP",
};
