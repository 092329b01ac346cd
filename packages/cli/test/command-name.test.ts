import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { after, test } from "node:test";

import { asTyped, commandName } from "../src/io/command-name.ts";
import { runParley } from "./support/parley.ts";

const folder = mkdtempSync(join(tmpdir(), "parley-name-"));
after(() => rmSync(folder, { recursive: true, force: true }));

/** A folder with a program `parley`. */
function withParley(...path: string[]): string {
  const bin = join(folder, ...path);
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, "parley"), "");
  return bin;
}

test("names npx parley unless a shell finds parley, also when npx has added its own folders", () => {
  const ofNpx = withParley("node_modules", ".bin");
  assert.equal(commandName({ PATH: `${ofNpx}${delimiter}/usr/bin` }), "npx parley");
  assert.equal(commandName({}), "npx parley");
  assert.equal(commandName({ PATH: `${ofNpx}${delimiter}${withParley("bin")}` }), "parley");
});

test("names the commands in a text as they are typed, and changes nothing else", () => {
  const typed = (text: string) => asTyped(text, { PATH: "" });
  assert.equal(typed("Run parley doctor, or `parley chat`."), "Run npx parley doctor, or `npx parley chat`.");
  assert.equal(typed("npx parley chat"), "npx parley chat");
  for (const other of ["edit parley.toml there", "the signer parley", "/opt/parley files", "Parley is ready"])
    assert.equal(typed(other), other);
  assert.equal(asTyped("parley chat", { PATH: withParley("bin") }), "parley chat");
});

test("prints help and advice with the command that works here", async () => {
  const home = join(folder, "home");
  const help = await runParley(home, ["chat", "--help"], { env: { PATH: "" } });
  assert.match(help.stdout, /npx parley chat/);
  assert.doesNotMatch(help.stdout, /(?<!npx |\.)\bparley [a-z]/);
  const advice = async (PATH: string) => (await runParley(home, ["webhooks", "test"], { env: { PATH } })).stderr;
  assert.equal(await advice(""), "Name a webhook; `npx parley webhooks list` shows them.\n");
  assert.equal(await advice(withParley("bin")), "Name a webhook; `parley webhooks list` shows them.\n");
});
