import { call, cat, type Tensor } from "@terse/tensor";

/**
 * Position embeddings of patches for another image size: bicubic, with antialiasing, as timm does; the first
 * `prefix` ones, of the class and the distillation token, stay.
 *
 *   positions (1, prefix + g², d) → (1, prefix + grid², d), for g and grid patches in a row
 */
export function interpolatePositions(positions: Tensor, { prefix, grid }: { prefix: number; grid: number }): Tensor {
  const [, count, width] = positions.shape as [number, number, number];
  const before = Math.sqrt(count - prefix);
  if (!Number.isInteger(before))
    throw new RangeError(
      `interpolatePositions: ${count} positions without the first ${prefix} are no square of patches; check the number of tokens before them`,
    );
  if (before === grid) return positions;
  const image = positions
    .narrow(1, prefix, before * before)
    .view(1, before, before, width)
    .permute(0, 3, 1, 2); // (1, d, g, g)
  const resized = call("aten::_upsample_bicubic2d_aa", image, [grid, grid], false, null, null) as Tensor;
  const patches = resized.permute(0, 2, 3, 1).reshape(1, grid * grid, width);
  return cat([positions.narrow(1, 0, prefix), patches], 1);
}
