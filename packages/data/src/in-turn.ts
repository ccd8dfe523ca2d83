/** How many items are worked on at once, by their sizes: letters of their texts. */
const most = { items: 64, size: 8 << 20 };

/** Works on several items at once, before their turn comes. Results and errors come in the order of the items. */
export async function* inTurn<Item, Result>(
  items: AsyncIterable<Item>,
  work: (item: Item) => Promise<Result>,
  sizeOf: (item: Item) => number,
): AsyncGenerator<Result> {
  const ahead: { readonly result: Promise<Result>; readonly size: number }[] = [];
  let total = 0;
  const first = () => {
    const { result, size } = ahead.shift()!;
    total -= size;
    return result;
  };
  for await (const item of items) {
    const [result, size] = [work(item), sizeOf(item)];
    result.catch(() => {}); // its turn may never come
    ahead.push({ result, size });
    total += size;
    while (ahead.length > most.items || total > most.size) yield await first();
  }
  while (ahead.length > 0) yield await first();
}
