/** The tables of labelled text: train.tsv and dev.tsv, as GLUE names them, or files with the name of a split. */
import { basename, extname } from "node:path";
import { namedPacking, packingProblem, unpackedName } from "../content/packing.ts";
import { DataError } from "../data-error.ts";
import { filesAt, type SizedFile } from "../files-at.ts";
import { fileGroup, type Inventory, leftOutGroups } from "../inventory.ts";
import { splitOfName } from "../split-names.ts";

export interface LabelledFiles {
  readonly training: readonly SizedFile[]; // one or more
  readonly validation: readonly SizedFile[];
  readonly inventory: Inventory;
}

/** `validation` is the name of the file to validate on, where it is given. Throws `DataError`. */
export async function labelledFiles(path: string, validation?: string): Promise<LabelledFiles> {
  const { isFolder, files, leftOut } = await filesAt(path, { flat: true });
  if (!isFolder)
    return { training: files, validation: [], inventory: { training: fileGroup(path, files), leftOut: [] } };
  const tables = files.filter((file) => /^\.[ct]sv$/i.test(extname(unpackedName(file.path))));
  const nameOf = (file: SizedFile) => basename(file.path);
  /** The file of this name, or else those of the split. */
  const called = (name: string, split: "training" | "validation") => {
    const same = tables.filter((file) => unpackedName(nameOf(file)).toLowerCase() === name);
    return same.length > 0 ? same : tables.filter((file) => splitOfName(nameOf(file)) === split);
  };
  const training = called("train.tsv", "training");
  if (training.length === 0) {
    const other = [...leftOut, ...files.map((file) => ({ ...file, why: whyNot(file) }))][0];
    const found = other ? ` (${nameOf(other)} is ${other.why})` : "";
    throw new DataError(
      `${path} has no train.tsv, nor another .tsv or .csv with train in its name${found}; add one to train on.`,
    );
  }
  const heldOut = validation === undefined ? called("dev.tsv", "validation") : named(validation);
  const left = [
    ...leftOut,
    ...files
      .filter((file) => !training.includes(file) && !heldOut.includes(file))
      .map((file) => ({ ...file, why: whyNot(file) })),
  ];
  return {
    training,
    validation: heldOut,
    inventory: {
      training: fileGroup(path, training),
      ...(heldOut.length > 0 && { heldOut: { ...fileGroup(path, heldOut), split: "validation" as const } }),
      leftOut: leftOutGroups(path, left),
    },
  };

  function named(name: string): SizedFile[] {
    const found = files.filter((file) => nameOf(file) === name);
    // Earlier versions have written this name into recipes, as the default.
    if (found.length === 0 && name !== "dev.tsv")
      throw new DataError(
        `data.validation is ${name}, and there is no such file, or an empty one, in ${path}; name one of ${tables.map(nameOf).join(", ")}.`,
      );
    return found;
  }

  function whyNot(file: SizedFile): string {
    const packing = namedPacking(file.path);
    if (packing && !packing.unpack) return packingProblem(file.path, new Uint8Array())!;
    if (!tables.includes(file)) return "no .tsv or .csv";
    if (splitOfName(nameOf(file)) === "test") return "the test split";
    return "neither trained nor validated on: data.validation names one";
  }
}
