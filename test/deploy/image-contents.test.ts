// How `npm run test:images` compares two builds.

import assert from "node:assert/strict";
import { test } from "node:test";

import { differences, entriesIn } from "../images/contents.ts";

const hash = (letter: string) => letter.repeat(64);
const output = (content: string, mode = "644") =>
  `. d 755 0:0 \n./app d 755 0:0 \n./app/a file.js f ${mode} 0:0 \n./app/link l 777 0:0 a file.js\n./etc/hosts f 644 0:0 \n` +
  `${hash(content)}  ./app/a file.js\n${hash("9")}  ./etc/hosts\n`;

test("finds a file with another content, mode or link, and one that only one build has", () => {
  const one = entriesIn(output("a"));
  assert.equal(one.size, 4);
  assert.deepEqual(differences(one, entriesIn(output("a"))), []);
  assert.deepEqual(differences(one, entriesIn(output("b"))), ["./app/a file.js"]);
  assert.deepEqual(differences(one, entriesIn(output("a", "755"))), ["./app/a file.js"]);
  assert.deepEqual(differences(one, entriesIn(output("a").replace("0:0 a file.js", "0:0 other"))), ["./app/link"]);
  assert.deepEqual(differences(one, entriesIn(output("a").replace("./app/link l", "./app/new l"))), [
    "./app/link",
    "./app/new",
  ]);
});

test("ignores what the engine writes into a container", () => {
  assert.deepEqual(differences(entriesIn(output("a")), entriesIn(output("a").replace(hash("9"), hash("8")))), []);
});
