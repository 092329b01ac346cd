// Prediction of the paths that a command line changes.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { propertyRuns } from "@parley/testing/property-runs";
import { predictChanges, type Change } from "../src/text/predict.ts";
import type { NamedPath } from "../src/text/shell-words.ts";
import { runOnText } from "../src/text/text-worker.ts";

const path = ({ path: text, pattern }: NamedPath) => (pattern ? `glob:${text}` : text);

function written(change: Change): string {
  if (change.kind === "copy") return `${change.from.map(path).join("+")} > ${path(change.to)}`;
  return change.kind === "tree" ? `${path(change.at)}/**` : path(change.at);
}

const foreseen = (command: string, directory = ".") => predictChanges(command, directory).map(written);

const lines: [string, string[]][] = [
  ["echo a > a.txt", ["a.txt"]],
  ["echo a >> 'b c.txt' 2>err.log", ["b c.txt", "err.log"]],
  ["make >& all.log; make &> more.log; make >| forced; echo 2>&1", ["all.log", "more.log", "forced"]],
  ["rm -rf build old.txt", ["build/**", "old.txt/**"]],
  ["rm -- -odd", ["-odd/**"]],
  ["rm *.txt 'lit*eral'", ["glob:*.txt/**", "lit*eral/**"]],
  ["mv a b dir", ["a/**", "b/**", "a+b > dir"]],
  ["mv -t dir a b", ["a/**", "b/**", "a+b > dir"]],
  ["cp -r src dst", ["src > dst"]],
  ["touch -d yesterday x y", ["x", "y"]],
  ["mkdir -p src/{a,b}/c", ["src/a/c", "src/b/c"]],
  ["cat in | tee -a out1 out2 > out3", ["out3", "out1", "out2"]],
  ["sed -i 's/a/b/' f g", ["f", "g"]],
  ["sed -i.bak -e 's/a/b/' -e 's/c/d/' f", ["f"]],
  ["sed -n 's/a/b/p' f", []],
  ["perl -pi -e 's/a/b/' f", ["f"]],
  ["chmod -R 700 dir; chmod +x run.sh", ["dir/**", "run.sh"]],
  ["dd if=/dev/zero of=disk.img count=1", ["disk.img"]],
  ["make && rm x || touch y; (cd sub && rm z); rm w", ["x/**", "y", "sub/z/**", "w/**"]],
  ["cd sub\nrm a; cd ..; rm b", ["sub/a/**", "sub/../b/**"]],
  ["for i in 1 2; do touch made; done; if true; then rm gone; fi", ["made", "gone/**"]],
  ["sudo -u me env A=1 timeout -k 5 10 rm x", ["x/**"]],
  ["bash -c 'rm inner && echo > out'", ["inner/**", "out"]],
  ["echo $(rm sub) `touch tick`", ["sub/**", "tick"]],
  ["cat > doc <<EOF\nrm not-run\nEOF", ["doc"]],
  ["echo a > /workspace/w; rm ~/home", ["/workspace/w", "/workspace/home/**"]],
  ['rm "$X" known', ["known/**"]],
  ["cd $X && rm unknown", []],
  ["cat a; ls; grep b c", []],
];

for (const [line, expected] of lines) {
  test(`predicts ${expected.join(", ") || "nothing"} for ${JSON.stringify(line)}`, () => {
    assert.deepEqual(foreseen(line), expected);
  });
}

test("resolves paths against the working directory of the command", () => {
  assert.deepEqual(foreseen("rm x; echo > ../y", "sub"), ["sub/x/**", "sub/../y"]);
});

test("property: never throws for any line", () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.constantFrom(
          "rm",
          "cd",
          "(",
          ")",
          "|",
          ">",
          "<<E",
          "$(",
          "`",
          "'",
          '"',
          "{a,",
          "}",
          "*",
          "\n",
          "x",
          "sed -i",
        ),
      ),
      (words) => {
        predictChanges(words.join(" "), ".");
      },
    ),
    { numRuns: propertyRuns(2_000) },
  );
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (line) => void predictChanges(line, ".")),
    { numRuns: propertyRuns(2_000) },
  );
});

test("does not block the service with deeply nested brackets", async () => {
  for (const command of [`rm ${"{".repeat(10_000)}a,b${"}".repeat(10_000)}`, `rm ${"$(".repeat(8_000)}`]) {
    const control = new AbortController();
    // Of this thread: other processes do not count.
    const before = process.threadCpuUsage();
    const answer = runOnText("predict", { command, directory: "." }, control.signal);
    const blockedMs = process.threadCpuUsage(before).user / 1_000;
    control.abort();
    await assert.rejects(answer, { name: "AbortError" });
    assert.ok(blockedMs < 200, `${blockedMs} ms`);
  }
});
