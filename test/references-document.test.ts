// The generated references: nothing that a person can set, send, call or read is without an entry.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { parseSettings } from "@parley/chassis";
import { errorMessage, slashCommands } from "@parley/contracts";
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
import { settingMeanings } from "../infra/docs/setting-meanings.ts";

/** What settings demand next to a key, where their error does not name it. */
const companions: readonly (readonly [key: RegExp, lines: Readonly<Record<string, string>>])[] = [
  [
    /^attachments\.transcription\.(?:url|model|key_env|language)$/,
    { "attachments.transcription.url": '"https://x.example"', "attachments.transcription.model": '"whisper-1"' },
  ],
  [/^tools\.web\.search\.key_env$/, { "tools.web.search.provider": '"brave"' }],
  [/^tools\.web\.search\.url$/, { "tools.web.search.provider": '"searxng"' }],
  [
    /\.oauth\.grant$/,
    { "mcp.servers.x.oauth.client_id": '"c"', "mcp.servers.x.oauth.client_secret_env": '"PARLEY_MCP_S"' },
  ],
  [
    /\.oauth\.(?:private_key_env|signing_algorithm)$/,
    {
      "mcp.servers.x.oauth.client_id": '"c"',
      "mcp.servers.x.oauth.grant": '"client_credentials"',
      "mcp.servers.x.oauth.private_key_env": '"PARLEY_MCP_K"',
    },
  ],
  [
    /\.oauth\.identity\./,
    {
      "mcp.servers.x.oauth.client_id": '"c"',
      "mcp.servers.x.oauth.grant": '"cross_app_access"',
      "mcp.servers.x.oauth.client_secret_env": '"PARLEY_MCP_S"',
    },
  ],
  [/^oidc\./, { "oidc.scopes.talk": '["parley.talk"]' }],
];

/** The dotted key in TOML: a name of the operator is `x`. */
const keyOf = (path: readonly string[]) =>
  path
    .map((part) => (part === "<name>" ? "x" : part))
    .join(".")
    .replaceAll(".[]", "[]");

/** Settings in TOML; a key such as `hooks[].event` belongs to the only entry of its list. */
function tomlOf(given: ReadonlyMap<string, string>): string {
  const [plain, listed] = [new Array<string>(), new Map<string, string[]>()];
  for (const [key, value] of given) {
    const [list = "", rest] = key.split("[].");
    if (rest === undefined) plain.push(`${key} = ${value}`);
    else listed.set(list, [...(listed.get(list) ?? [`[[${list}]]`]), `${rest} = ${value}`]);
  }
  return [...plain, ...[...listed.values()].flat()].join("\n");
}

/** The key that an error of the settings demands; undefined: it demands none. */
function demanded(message: string, key: string): string | undefined {
  const text = message.replaceAll(/\.0(?=[.:])/g, "[]");
  const [, missing] = /^\s*([\w.[\]]+): is missing/m.exec(text) ?? [];
  const [, event] = /^\s*(hooks\[\]\.event): undefined/m.exec(text) ?? [];
  const [, table, required] = /^\s*([\w.[\]]+)\.\w+: .* requires (\w+)$/m.exec(text) ?? [];
  const [, either] = /^\s*([\w.[\]]+): set either `command` or `url`/m.exec(text) ?? [];
  if (missing !== undefined || event !== undefined) return missing ?? event;
  if (table !== undefined) return `${table}.${required ?? ""}`;
  return either === undefined ? undefined : `${either}.${/oauth|headers|token_env|era/.test(key) ? "url" : "command"}`;
}

/** Throws ConfigError unless the settings accept the example of the key, with those of the keys that they demand next to it. */
function parseExample(key: string, examples: ReadonlyMap<string, string>): void {
  const needed = companions.flatMap(([of, lines]) => (of.test(key) ? Object.entries(lines) : []));
  const given = new Map([...needed, [key, examples.get(key) ?? ""]]);
  for (;;) {
    try {
      parseSettings(tomlOf(given), "example");
      return;
    } catch (error) {
      const next = demanded(errorMessage(error), key);
      const example = next === undefined ? undefined : examples.get(next);
      if (next === undefined || example === undefined || given.has(next)) throw error;
      given.set(next, example);
    }
  }
}

const page = (name: string) => readFileSync(new URL(`../docs/${name}.md`, import.meta.url), "utf8");

test("matches the generated references in docs/reference", () => {
  assert.equal(page("reference/cli"), cliDocument(), "stale: run npm run docs");
  assert.equal(page("reference/settings"), settingsDocument(), "stale: run npm run docs");
  assert.equal(page("reference/websocket"), eventsDocument(), "stale: run npm run docs");
});

test("has a row for every setting, with its type, meaning and an example that the settings accept", () => {
  const entries = settingEntries();
  assert.ok(entries.length > 250, `${entries.length} settings`);
  for (const { path, type } of entries) {
    assert.ok(page("reference/settings").includes(`| \`${path.join(".").replaceAll(".[]", "[]")}\` |`), path.join("."));
    assert.notEqual(type, "", path.join("."));
  }
  const keys = entries.map(({ path }) => path.join(".").replaceAll(".[]", "[]"));
  const ofEveryChannel = keys.map((key) => key.replace(/^channels\.\w+\.<name>/, "channels.*"));
  const unknown = new Set(Object.keys(settingMeanings)).difference(new Set([...keys, ...ofEveryChannel]));
  assert.deepEqual([...unknown], [], "meanings of settings that exist");
  const withoutMeaning = page("reference/settings").match(/^\| `.*\|  \|$/gm);
  assert.deepEqual(withoutMeaning, null);
  const examples = new Map(entries.map(({ path, example }) => [keyOf(path), example]));
  for (const key of examples.keys()) assert.doesNotThrow(() => parseExample(key, examples), key);
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
