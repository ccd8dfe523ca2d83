import { native } from "@terse/native-tensor";
import { handleOf } from "./lifetime.ts";
import { Tensor } from "./tensor.ts";

/** Seeds the generator behind randn, rand, dropout, multinomial …: the same numbers as PyTorch gives for this seed. */
export function manualSeed(seed: number | bigint): void {
  native.manualSeed(seed);
}

/** The CPU generator's state, a u8 tensor: what a checkpoint holds so that a resumed run draws the same numbers. */
export const randomState = (): Tensor => new Tensor(native.randomState());

export function setRandomState(state: Tensor): void {
  native.setRandomState(handleOf(state));
}
