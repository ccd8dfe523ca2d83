/** Rank 1 has another size than the others. */
import { joinWorld } from "@terse/collectives";
import { tell, tellError } from "./tell.ts";

const [usual = "10", odd = "11"] = process.argv.slice(2);
const group = await joinWorld();
try {
  await group.allReduce(new Float32Array(Number(group.rank === 1 ? odd : usual)));
  tell({ finished: true });
} catch (error) {
  tellError(error);
}
await group.close();
