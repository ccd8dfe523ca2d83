import { expect, it } from "vitest";
import { localWork } from "./local-work.ts";

it("measures both sides in one round, and the parts of a side add up", () => {
  const { local_over_lion, details } = localWork({ n: 2 ** 16, rounds: 1 });
  const { lion_step_ms, lion_cub_local_ms, momentum_sign_pack_ms, vote_of_8_ms, unpack_decay_apply_ms } = details;
  expect(lion_cub_local_ms).toBeCloseTo(momentum_sign_pack_ms + vote_of_8_ms + unpack_decay_apply_ms, 9);
  expect(local_over_lion).toBeCloseTo(lion_cub_local_ms / lion_step_ms, 9);
});
