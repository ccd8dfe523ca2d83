/** The search for a method's learning rate. */

export interface Tried {
  readonly lr: number;
  /** NaN where the run broke off. */
  readonly loss: number;
}

/**
 * Tries `start`, half and twice of it, and goes on in steps of two as long as the best is the least or the largest that
 * was tried, `most` rates in all. The first of the result is the best.
 */
export async function searchRate(
  start: number,
  lossOf: (lr: number) => Promise<number>,
  { most = 6 }: { most?: number } = {},
): Promise<Tried[]> {
  const one = async (lr: number): Promise<Tried> => ({ lr, loss: await lossOf(lr) });
  const tried = await Promise.all([start / 2, start, 2 * start].map(one));
  const order = ({ loss }: Tried) => (Number.isNaN(loss) ? Number.POSITIVE_INFINITY : loss);
  const byLoss = () => tried.sort((a, b) => order(a) - order(b) || a.lr - b.lr);
  while (tried.length < most) {
    const [best] = byLoss() as [Tried];
    const rates = tried.map(({ lr }) => lr);
    if (best.lr === Math.min(...rates)) tried.push(await one(best.lr / 2));
    else if (best.lr === Math.max(...rates)) tried.push(await one(2 * best.lr));
    else break;
  }
  return byLoss();
}
