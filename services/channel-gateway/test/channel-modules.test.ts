// What a configured channel adds to a gateway: the modules of its own folder, its libraries, and memory.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { describe, test } from "node:test";
import { promisify } from "node:util";
import { channelEntries } from "@parley/contracts";

const account = {
  token_env: "PARLEY_CHANNEL_A",
  app_token_env: "PARLEY_CHANNEL_B",
  signing_secret_env: "PARLEY_CHANNEL_B",
  api_root: "http://x.invalid",
};
/** Settings and secrets with which each adapter starts. */
const configured: Record<string, { settings: object; secrets?: Record<string, string>; libraries?: string[] }> = {
  telegram: { settings: { token_env: "PARLEY_CHANNEL_A" }, secrets: { PARLEY_CHANNEL_A: "1:a" } },
  irc: { settings: { host: "x.invalid", nick: "parley" } },
  email: {
    settings: {
      address: "agent@x.invalid",
      consent: true,
      authserv_id: "x.invalid",
      smtp_host: "x.invalid",
      imap_host: "x.invalid",
      password_env: "PARLEY_CHANNEL_A",
    },
    secrets: { PARLEY_CHANNEL_A: "p" },
    libraries: ["imapflow", "mailparser", "nodemailer", "smtp-server"],
  },
  whatsapp: {
    settings: {
      phone_number_id: "12345",
      token_env: "PARLEY_CHANNEL_A",
      app_secret_env: "PARLEY_CHANNEL_B",
      verify_token_env: "PARLEY_CHANNEL_B",
    },
    secrets: { PARLEY_CHANNEL_A: "t", PARLEY_CHANNEL_B: "s" },
  },
  slack: {
    settings: { ...account, mode: "events" },
    secrets: { PARLEY_CHANNEL_A: "xoxb-1", PARLEY_CHANNEL_B: "xapp-1" },
  },
  discord: { settings: { token_env: "PARLEY_CHANNEL_A" }, secrets: { PARLEY_CHANNEL_A: "a.b.c" } },
  matrix: {
    settings: { homeserver: "https://x.invalid", token_env: "PARLEY_CHANNEL_A" },
    secrets: { PARLEY_CHANNEL_A: "t" },
  },
  signal: { settings: { number: "+15550100000" }, libraries: ["eventsource-parser"] },
};

const maxGrowthBytes = 10 * 2 ** 20;

interface Loaded {
  created: string;
  modules: string[];
  rssBytes: number;
}

/** Loads the gateway without a channel, then the adapter of one account, in a process of its own. */
async function loaded(channel: string): Promise<Loaded> {
  const { settings, secrets = {} } = configured[channel] ?? { settings: {} };
  const source = (path: string) => JSON.stringify(new URL(`../src/${path}`, import.meta.url).href);
  const script = `
    import { registerHooks, stripTypeScriptTypes } from "node:module";
    const modules = [];
    registerHooks({ load: (url, context, next) => (modules.push(url), next(url, context)) });
    await import(${source("service.ts")});
    const { createAdapter } = await import(${source("accounts/adapters.ts")});
    const { channelNamed } = await import("@parley/contracts");
    const settings = channelNamed(${JSON.stringify(channel)}).settings.parse(${JSON.stringify(settings)});
    // Otherwise the first file that is not in the compile cache loads the type stripper, which a build does not have.
    stripTypeScriptTypes("let number: number;");
    modules.length = 0;
    gc();
    const before = process.memoryUsage().rss;
    const secrets = new Map(Object.entries(${JSON.stringify(secrets)}));
    const account = { channel: ${JSON.stringify(channel)}, account: "main" };
    const adapter = await createAdapter(account, settings, async (variable) => secrets.get(variable));
    gc();
    const rssBytes = process.memoryUsage().rss - before;
    console.log(JSON.stringify({ created: adapter.channel, modules, rssBytes }));
    process.exit();`;
  const args = ["--conditions=@parley/source", "--expose-gc", "--input-type=module", "--eval", script];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: import.meta.dirname });
  return JSON.parse(stdout) as Loaded;
}

describe("a gateway with one channel", () => {
  for (const { name: channel } of channelEntries) {
    test(`loads for ${channel} only its own folder and libraries`, async (t) => {
      const { created, modules, rssBytes } = await loaded(channel);
      assert.equal(created, channel);
      const folders = modules.flatMap((url) => /\/src\/channels\/(\w+)\//.exec(url)?.[1] ?? []);
      const packages = modules.flatMap((url) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url)?.[1] ?? []);
      t.diagnostic(`${(rssBytes / 2 ** 20).toFixed(1)} MiB; packages: ${[...new Set(packages)].join(", ") || "none"}`);
      assert.deepEqual([...new Set(folders)], [channel]);
      const { libraries = [] } = configured[channel] ?? {};
      const others = Object.values(configured).flatMap((other) => other.libraries ?? []);
      assert.deepEqual(
        others.filter((library) => packages.includes(library)),
        libraries,
      );
      if (libraries.length === 0) assert.deepEqual(packages, []);
      // The libraries of e-mail read and write protocols of their own.
      if (channel !== "email") assert.ok(rssBytes <= maxGrowthBytes, `${rssBytes} bytes`);
    });
  }
});
