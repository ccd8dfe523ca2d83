import type { Unit } from "./quantities.ts";
import type { By } from "./run-data.ts";

export const unitsOfX: Record<By, Unit> = { steps: "steps", seconds: "s", bytes: "B" };
