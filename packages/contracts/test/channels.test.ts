// The entries of the channels: names, secrets and the generated page.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { channelEntries, channelNamed, openQuestions, secretsOf, settingNamesOf } from "@parley/contracts";
import { channelsDocument } from "../src/docs/channels.ts";

test("docs/channels.md matches the entries", () => {
  const written = readFileSync(new URL("../../../docs/channels.md", import.meta.url), "utf8");
  assert.equal(written, channelsDocument(), "stale: run npm run docs");
});

test("entries have unique names that are valid in addresses and settings", () => {
  const names = channelEntries.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
  for (const name of names) assert.match(name, /^[a-z][a-z0-9]*$/);
  assert.equal(channelNamed("http"), undefined);
});

test("entries describe their set-up and every secret setting exists in the schema", () => {
  for (const { name, setUp, permissions, secrets, settings, exampleAddress } of channelEntries) {
    assert.ok(setUp.length > 0 && permissions.length > 0, name);
    assert.ok(exampleAddress.startsWith(`${name}:`), name);
    for (const { setting } of secrets) {
      const { error } = settings.safeParse({ [setting]: "not a variable" });
      assert.ok(
        error?.issues.some(({ path }) => path[0] === setting),
        `${name}: ${setting}`,
      );
    }
  }
});

test("asks for every setting that an account cannot do without, and only for settings that exist", () => {
  for (const entry of channelEntries) {
    const asked = (entry.questions ?? []).map(({ setting }) => setting);
    const { required, optional } = settingNamesOf(entry);
    for (const name of required) assert.ok(asked.includes(name), `${entry.name}: ${name}`);
    for (const name of asked) assert.ok([...required, ...optional].includes(name), `${entry.name}: ${name}`);
  }
  const email = channelNamed("email");
  assert.ok(email);
  const open = (settings: object) => openQuestions(email, settings).map(({ setting }) => setting);
  assert.ok(open({}).includes("imap_host"));
  assert.equal(open({ mode: "lmtp" }).includes("imap_host"), false);
  assert.equal(open({ consent: true }).includes("consent"), false);
});

test("every channel has a page that says what to do when something does not work", () => {
  for (const { name } of channelEntries) {
    const page = new URL(`../../../docs/channels/${name}.md`, import.meta.url);
    assert.ok(existsSync(page), name);
    const text = readFileSync(page, "utf8");
    assert.match(text, /^## Troubleshooting$/m, name);
    assert.ok(text.includes(`npx parley channels logs ${name}:main`), name);
  }
});

test("requires a secret that depends on another setting only when it has the value", () => {
  const entry = channelEntries.find(({ secrets }) => secrets.some(({ required }) => typeof required === "object"));
  assert.ok(entry);
  const secret = entry.secrets.find(({ required }) => typeof required === "object");
  assert.ok(secret && typeof secret.required === "object");
  const { setting, value } = secret.required;
  const needed = (settings: object) =>
    secretsOf(entry, settings).find((each) => each.setting === secret.setting)?.needed;
  assert.equal(needed({ [setting]: value }), true);
  assert.equal(needed({}), false);
});

test("explains a wrong value of a setting without its pattern", () => {
  for (const entry of channelEntries) {
    const { required, optional } = settingNamesOf(entry);
    const wrong = Object.fromEntries([...required, ...optional].map((name) => [name, "?!"]));
    const { error } = entry.settings.safeParse(wrong);
    const shown = (error?.issues ?? []).map(({ path, message }) => `${entry.name} ${path.join(".")}: ${message}`);
    assert.ok(shown.length > 0, entry.name);
    assert.deepEqual(
      shown.filter((line) => line.includes("pattern")),
      [],
    );
  }
});

test("the manifest of docs/channels/slack.md has the scopes of its events, and docs/channels.md explains its scopes", () => {
  const page = readFileSync(new URL("../../../docs/channels/slack.md", import.meta.url), "utf8");
  const { oauth_config: oauth, settings } = JSON.parse(/```json\n(\{[^]*?\n\})\n```/.exec(page)?.[1] ?? "null") as {
    oauth_config: { scopes: { bot: string[] } };
    settings: { event_subscriptions: { bot_events: string[] } };
  };
  // https://docs.slack.dev/reference/events: `member_joined_channel` comes only from kinds of channels whose scope the app has.
  const scopesOf: Record<string, string[]> = {
    app_mention: ["app_mentions:read"],
    member_joined_channel: ["channels:read", "groups:read"],
    "message.channels": ["channels:history"],
    "message.groups": ["groups:history"],
    "message.im": ["im:history"],
    "message.mpim": ["mpim:history"],
    reaction_added: ["reactions:read"],
    reaction_removed: ["reactions:read"],
  };
  const needed = settings.event_subscriptions.bot_events.flatMap((event) => scopesOf[event] ?? [`scope of ${event}`]);
  const { bot } = oauth.scopes;
  assert.deepEqual(
    needed.filter((scope) => !bot.includes(scope)),
    [],
  );
  const explained = channelNamed("slack")?.permissions.join(" ") ?? "";
  assert.deepEqual(
    bot.filter((scope) => !explained.includes(`\`${scope}\``)),
    [],
  );
});
