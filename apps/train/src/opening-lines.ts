import type { Group } from "@terse/collectives";
import { LocalSteps, type TrainingOptimizer } from "@terse/optimizers";
import { emulatedLinkText } from "./emulated-link-text.ts";
import { amountText, bytesText } from "./format.ts";
import { parameterCounts, parametersText } from "./parameter-counts.ts";
import { methodName } from "./parameter-groups.ts";
import type { Parts } from "./parts.ts";
import type { Recipe } from "./recipe.ts";
import { everyText, sentText } from "./sent-text.ts";

/** What a run is: its model and data, its ranks and their network, and what its optimizer sends. */
export function openingLines(
  recipe: Recipe,
  group: Group,
  { model, data, optimizer }: Parts,
  firstStep: number,
): string[] {
  const { size, engine } = group;
  const parameters = parametersText(parameterCounts(model), recipe.adapter?.name);
  const amounts = `${amountText(data.trainingUnits, data.unit)} to train on, ${amountText(data.validationUnits, data.unit)} to validate`;
  const link = emulatedLinkText(group);
  const ranks = `${amountText(size, "rank")} over ${engine}${link === undefined ? "" : `; the link is emulated, ${link}`}`;
  const insideOf = (step: number) => (optimizer instanceof LocalSteps ? optimizer.bytesInside(step) : 0);
  const sent = sentText(recipe, (step) => optimizer.bytesSent(step), firstStep, insideOf);
  const dense = size > 1 ? `; 32-bit data parallel would send ${bytesText(optimizer.denseBytes)}` : "";
  return [
    `model ${recipe.model.name}, ${parameters}; data ${data.source}, ${amounts}; ${ranks}`,
    `optimizer ${methodName(recipe)}: each rank sends ${sent}${dense}`,
    ...(recipe.local ? [localText(recipe.local)] : size > 1 ? [overlapText(recipe, optimizer)] : []),
  ];
}

function localText({ syncEvery, fragments, delay, alpha, rebase, within }: NonNullable<Recipe["local"]>): string {
  const part = fragments === 1 ? "all parameters are" : `one of ${fragments} fragments is`;
  const beside = delay === 0 ? "" : `; a round travels beside ${delay === 1 ? "a step" : `${delay} steps`}`;
  const keeps = alpha === 0 ? "" : `, and a rank keeps ${alpha} of its own work`;
  const rebased = rebase && delay > 0 ? `, which ${delay === 1 ? "goes" : "go"} on top of what it brings` : "";
  const whose = within === "host" ? ", in which the ranks of a host go together" : "";
  return `local steps${whose}: ${part} shared ${everyText(syncEvery / fragments)}${beside}${rebased}${keeps}; the loss is that of the ranks' own models, validation that of the shared one`;
}

function overlapText({ overlap, bucket }: Recipe, { obstacle }: TrainingOptimizer): string {
  if (obstacle === undefined && overlap !== "off") return "messages leave while backward still runs";
  const why = overlap === "off" ? " (overlap is off)" : `: ${obstacle}`;
  return `messages leave after backward${why}${bucket === "auto" ? "; bucket: auto has nothing to choose then" : ""}`;
}
