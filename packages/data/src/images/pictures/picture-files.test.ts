/** Folders that are odd in the ways that people's folders are, as torchvision's ImageFolder reads them. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { needsModules, runPython } from "../../../../tensor/src/testing/python.ts";
import { pictureFiles } from "./picture-files.ts";
import { countClasses, pictureFolder } from "./picture-folder.ts";

let path: string;
beforeEach(() => {
  path = mkdtempSync(join(tmpdir(), "terse-folder-"));
});
afterEach(() => rmSync(path, { recursive: true, force: true }));

/** Files, whose content does not matter here. */
function make(...names: string[]): void {
  for (const name of names) {
    mkdirSync(join(path, dirname(name)), { recursive: true });
    writeFileSync(join(path, name), "picture");
  }
}

const nameOf = (file: { path: string }) => relative(path, file.path);
const leftOut = async () =>
  Object.fromEntries(
    (await pictureFiles(path)).inventory.leftOut.map(({ why, count, names }) => [why, [count, ...names]]),
  );

const missing = needsModules("torchvision");

describe.skipIf(missing)(
  `a folder has the files, the order and the labels of torchvision's ImageFolder${missing}`,
  () => {
    async function expectAsTorchvision(root = path): Promise<void> {
      const { numbers } = await runPython(`
import json
from torchvision.datasets import ImageFolder
folder = ImageFolder(${JSON.stringify(root)})
text = json.dumps([folder.classes, [[os.path.relpath(name, ${JSON.stringify(path)}), label] for name, label in folder.samples]])
outputs["numbers"] = torch.tensor(list(text.encode()), dtype=torch.uint8)
`);
      const [classes, samples] = JSON.parse(new TextDecoder().decode((await numbers!.toTypedArray()) as Uint8Array));
      const { folder, training } = await pictureFiles(path);
      expect(folder.classes).toEqual(classes);
      expect(training.map((file) => [nameOf(file), file.label])).toEqual(samples);
      expect(countClasses(path)).toBe(classes.length);
    }

    it("with pictures of every ending, in capitals, and with others", async () => {
      make(
        "dog/a.jpg",
        "dog/b.JPEG",
        "dog/c.png",
        "dog/d.ppm",
        "dog/e.bmp",
        "dog/f.pgm",
        "dog/g.tif",
        "dog/h.TIFF",
        "dog/i.webp",
      );
      make("Cat/10.jpg", "Cat/9.jpg", "Cat/a.b.jpg", "Cat/notes.txt", "Cat/jpg", "Cat/x.jpg.txt", "README.md");
      await expectAsTorchvision();
    });

    it("with folders in the folders of classes, one with the ending of a picture, and with links", async () => {
      make(
        "cat/z.jpg",
        "cat/b/1.jpg",
        "cat/b-2/1.jpg",
        "cat/b/deep/er/1.jpg",
        "cat/a.png/1.jpg",
        "elsewhere/of/linked/2.jpg",
      );
      make("dog/1.jpg");
      mkdirSync(join(path, "owl"));
      symlinkSync(join(path, "cat/z.jpg"), join(path, "dog/link.jpg"));
      symlinkSync(join(path, "elsewhere/of/linked"), join(path, "owl/linked"));
      symlinkSync("dog", join(path, "wolf"));
      await expectAsTorchvision();
    });

    it("with names in the order of code points, where an emoji comes behind a wide letter", async () => {
      make("🐱/1.jpg", "ｃat/1.jpg", "Äpfel/1.jpg", "a b/1.jpg", "a/ｂ.jpg", "a/😀.jpg", "a/z.jpg", "B/1.jpg");
      await expectAsTorchvision();
    });

    it("below train/, whatever else is beside it", async () => {
      make("train/dog/1.jpg", "train/cat/1.jpg", "val/cat/1.jpg", "scripts/a.py", "labels.csv");
      await expectAsTorchvision(join(path, "train"));
    });

    it("that are not readable as classes are refused by both", async () => {
      make("cat/1.jpg", "dog/1.heic", "dog/2.heic", "dog/notes.txt");
      await expect(expectAsTorchvision()).rejects.toThrow(/Found no valid file for the classes dog/);
      await expect(pictureFiles(path)).rejects.toThrow(
        /dog has no picture that can be read \(\.jpg, .*\) but 3 other files: \.heic is not read, \.txt is not read; add some, or remove the folder/,
      );
    });
  },
);

describe("the parts of a folder", () => {
  const parts = async () => {
    const { training, heldOut, inventory } = await pictureFiles(path);
    return [training.map(nameOf), heldOut.map(nameOf), inventory.heldOut?.split];
  };

  it.each(["val", "valid", "validation", "dev", "Val", "val2017", "validation_images"])(
    "are train/ and %s/, and test/ is left out",
    async (name) => {
      make("train/cat/1.jpg", "train/dog/1.jpg", `${name}/dog/2.jpg`, "test/cat/3.jpg", "test/dog/3.jpg");
      expect(await parts()).toEqual([["train/cat/1.jpg", "train/dog/1.jpg"], [`${name}/dog/2.jpg`], "validation"]);
      expect((await pictureFiles(path)).heldOut[0]!.label).toBe(1);
      expect(await leftOut()).toEqual({ "the test split": [2, "test/cat/3.jpg", "test/dog/3.jpg"] });
    },
  );

  it.each(["test", "Testing", "eval"])("are train/ and %s/ where there are no others", async (name) => {
    make("training/cat/1.jpg", "training/dog/1.jpg", `${name}/dog/2.jpg`);
    expect(await parts()).toEqual([["training/cat/1.jpg", "training/dog/1.jpg"], [`${name}/dog/2.jpg`], "test"]);
    expect(await leftOut()).toEqual({});
  });

  it("are all of train_images/ and val_images/", async () => {
    make("train_images/cat/1.jpg", "train_images/dog/1.jpg", "val_images/dog/2.jpg");
    expect((await parts())[1]).toEqual(["val_images/dog/2.jpg"]);
  });

  it("are none where folders of classes have such names", async () => {
    make("train/1.jpg", "test tube/1.jpg", "bus/1.jpg", "dev board/1.jpg");
    expect(pictureFolder(path)).toMatchObject({ root: path, classes: ["bus", "dev board", "test tube", "train"] });
    make("train station/north/1.jpg");
    expect(pictureFolder(path).root).toBe(path);
  });

  it("do not have pictures without a class, which are left out", async () => {
    make("train/cat/1.jpg", "train/dog/1.jpg", "train/3.jpg", "test/4.jpg", "5.jpg", "more/6.jpg");
    expect(await parts()).toEqual([["train/cat/1.jpg", "train/dog/1.jpg"], [], undefined]);
    expect(await leftOut()).toEqual({
      "in no folder of a class": [2, "5.jpg", "train/3.jpg"],
      "beside train/": [1, "more/6.jpg"],
      "no folders of classes in it": [1, "test/4.jpg"],
    });
  });

  it("leave out what is hidden, what is no file, links that lead nowhere and in a circle, and files with other endings", async () => {
    make(
      "cat/1.jpg",
      "cat/._1.jpg",
      "cat/.DS_Store",
      "cat/2.heic",
      "cat/3.svg",
      "cat/notes",
      "dog/1.jpg",
      ".git/x.jpg",
    );
    make("cat/.ipynb_checkpoints/1.jpg");
    symlinkSync("/dev/zero", join(path, "cat/zero.jpg"));
    symlinkSync(join(path, "absent"), join(path, "cat/gone.jpg"));
    symlinkSync("round.jpg", join(path, "cat/round.jpg"));
    symlinkSync("..", join(path, "cat/up"));
    symlinkSync("nowhere", join(path, "wolf"));
    execFileSync("mkfifo", [join(path, "dog/pipe.jpg")]);
    expect((await parts())[0]).toEqual(["cat/1.jpg", "dog/1.jpg"]);
    expect(await leftOut()).toEqual({
      hidden: [1, "cat/._1.jpg"],
      ".heic is not read": [1, "cat/2.heic"],
      ".svg is not read": [1, "cat/3.svg"],
      "no ending": [1, "cat/notes"],
      "no regular file": [2, "cat/zero.jpg", "dog/pipe.jpg"],
      "a link that leads nowhere": [1, "cat/gone.jpg"],
      "its symbolic links form a cycle": [1, "cat/round.jpg"],
      "a link to a folder that it is in": [1, "cat/up"],
      "in no folder of a class": [1, "wolf"],
    });
  });

  it("are refused without training pictures, with several folders of them, without folders, and with one class", async () => {
    make("val/cat/1.jpg", "test/cat/1.jpg");
    expect(() => pictureFolder(path)).toThrow(
      /has test, val and no folder of training pictures beside; name it .*train\.$/,
    );
    make("train-1/cat/1.jpg", "train-2/cat/1.jpg");
    expect(() => pictureFolder(path)).toThrow(
      /has the folders train-1, train-2, and only one can have the training pictures/,
    );
    expect(() => pictureFolder(join(path, "val/cat"))).toThrow(/has no folder with pictures: put those of each class/);
    expect(() => countClasses(join(path, "val"))).toThrow(
      /val has one folder, cat, and with one class there is nothing to learn; .* or set data\.classes to 1/,
    );
    expect(() => pictureFolder(join(path, "val/cat/1.jpg"))).toThrow(/Cannot read the folder .*1\.jpg/);
    make("flat/train/1.jpg", "flat/test/2.jpg");
    expect(() => pictureFolder(join(path, "flat"))).toThrow(
      /flat has test, train, which are splits by their names and no classes, and test has no folders in it; put the/,
    );
    make("tests/test_negative/1.jpg", "tests/test_positive/1.jpg");
    expect(countClasses(join(path, "tests"))).toBe(2);
    expect(() => pictureFolder(join(path, "absent"))).toThrow(/Cannot read the folder .*absent: it does not exist/);
  });
});
