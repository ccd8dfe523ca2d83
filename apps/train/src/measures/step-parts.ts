/** The parts of a training step: those of the loop, then those of its messages. */
export const parts = ["data", "forward", "backward", "encode", "wire", "decode", "update"] as const;

export type StepPart = (typeof parts)[number];

/** Seconds of each part. */
export type PartTimes = Readonly<Record<StepPart, number>>;
