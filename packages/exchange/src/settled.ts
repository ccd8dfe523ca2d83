/**
 * The results of all promises, when all have settled, also if one rejects: until then their memory belongs to the
 * group.
 */
export async function settled<T>(operations: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(operations);
  return Promise.all(operations);
}
