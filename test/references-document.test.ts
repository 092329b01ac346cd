// The generated references: nothing that a person can set, send, call or read is without an entry.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { parseSettings } from "@parley/chassis";
import { slashCommands } from "@parley/contracts";
import { z } from "zod";
import { cliDocument, commandNames } from "../infra/docs/cli-document.ts";
import {
  clientFrames,
  controlRequests,
  eventsDocument,
  serverFrames,
  sessionEvents,
} from "../infra/docs/events-document.ts";
import { settingEntries, settingsDocument } from "../infra/docs/settings-document.ts";

const page = (name: string) => readFileSync(new URL(`../docs/${name}.md`, import.meta.url), "utf8");

test("matches the generated references in docs/reference", () => {
  assert.equal(page("reference/cli"), cliDocument(), "stale: run npm run docs");
  assert.equal(page("reference/settings"), settingsDocument(), "stale: run npm run docs");
  assert.equal(page("reference/websocket"), eventsDocument(), "stale: run npm run docs");
});

test("has a row for every setting, with its type and an example that the settings accept", () => {
  const entries = settingEntries();
  assert.ok(entries.length > 250, `${entries.length} settings`);
  for (const { path, type } of entries) {
    assert.ok(page("reference/settings").includes(`| \`${path.join(".").replaceAll(".[]", "[]")}\` |`), path.join("."));
    assert.notEqual(type, "", path.join("."));
  }
  const tables = new Set(["session", "queue", "limits", "subagents", "memory", "heartbeat", "compaction", "context"]);
  for (const { path, example } of entries) {
    const [table = "", key = "", ...deeper] = path;
    if (!tables.has(table) || deeper.length > 0 || example === null || key === "<name>") continue;
    // Settings that depend on another one are named by the error, all others are accepted.
    const text = `[${table}]\n${key} = ${example}\n`;
    assert.doesNotThrow(() => parseSettings(text, "example"), text);
  }
});

test("has a section for every command of the command line, and an entry for every slash command", () => {
  for (const name of commandNames()) assert.ok(page("reference/cli").includes(`\n## ${name}\n`), name);
  for (const { usage } of slashCommands)
    assert.ok(page("commands").includes(`\`${usage.replaceAll("|", "\\|")}\``), usage);
});

test("has an entry for every frame, control request and event", () => {
  const document = page("reference/websocket");
  const names = [...clientFrames(), ...sessionEvents()].map(({ type }) => type);
  for (const name of [...names, ...serverFrames()]) assert.ok(document.includes(`| \`${name}\` |`), name);
  for (const name of serverFrames()) assert.doesNotMatch(document, new RegExp(`\\| \`${name}\` \\|  \\|`), name);
  const surface = z
    .object({ controlRequests: z.array(z.string()) })
    .parse(
      JSON.parse(
        readFileSync(new URL("../services/channel-gateway/test/fixtures/surface.json", import.meta.url), "utf8"),
      ),
    );
  const documented = controlRequests().map(({ subtype }) => subtype);
  assert.deepEqual(documented.toSorted(), surface.controlRequests.toSorted());
});
