import { native } from "@terse/native-tensor";
import { handleOf } from "./lifetime.ts";
import { Tensor } from "./tensor.ts";

/** Seeds randn, rand, dropout, multinomial …, which then give the same numbers as PyTorch with this seed. */
export function manualSeed(seed: number | bigint): void {
  native.manualSeed(seed);
}

/** The CPU generator's state, a u8 tensor. A checkpoint saves it, so that a resumed run draws the same numbers. */
export const randomState = (): Tensor => new Tensor(native.randomState());

/** Restores a state of the CPU generator that `randomState` returned. */
export function setRandomState(state: Tensor): void {
  native.setRandomState(handleOf(state));
}
