/** The results of all, when all have ended, also where one fails: until then their memory belongs to the group. */
export async function settled<T>(operations: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(operations);
  return Promise.all(operations);
}
