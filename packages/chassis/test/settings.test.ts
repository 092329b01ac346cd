// Settings from a preset, a file, variables and flags: precedence, sources and refused values.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { ConfigError, explainSettings, flagsAsVariable, loadSettings, parseSettings } from "@parley/chassis";
import { presetNames } from "@parley/contracts";
import { Cleanup, temporaryFolder } from "@parley/testing";
import fc from "fast-check";
import { mergeLayers, sourceOf, type Table } from "../src/settings-layers.ts";

const cleanup = new Cleanup();
after(() => cleanup[Symbol.asyncDispose]());
const folder = await temporaryFolder(cleanup);

let files = 0;
function file(text: string): string {
  const path = join(folder, `parley-${(files += 1)}.toml`);
  writeFileSync(path, text);
  return path;
}
const set = (...flags: string[]) => flagsAsVariable(flags);
const refused = (path: string | undefined, env: Record<string, string>, message: RegExp) =>
  assert.throws(
    () => loadSettings(path, env),
    (error: unknown) => error instanceof ConfigError && message.test(error.message),
  );

describe("wrong values", () => {
  test("are described in the words of parley.toml, without the value", () => {
    const telegram = (line: string) => file(`[channels.telegram.main]\n${line}\n`);
    const token = 'token_env = "PARLEY_CHANNEL_X"';
    refused(
      telegram(`${token}\napi_root = "localhost 99"`),
      {},
      /main\.api_root: must be a URL such as https:\/\/example\.org$/,
    );
    refused(telegram('owners = ["1"]'), {}, /main\.token_env: is missing; it must be a text in quotes$/);
    refused(telegram(`${token}\nowners = [4711]`), {}, /main\.owners\.0: must be a text in quotes, not a number$/);
    refused(telegram(`${token}\nowners = "1"`), {}, /main\.owners: must be a list in brackets, not a text in quotes$/);
    refused(file("[limits]\nmax_iterations = true"), {}, /max_iterations: must be a number, not true or false$/);
  });
});

describe("precedence", () => {
  // design: 001.27
  test("prefers flags to variables, the file, its preset and defaults, and names each source", () => {
    const path = file('preset = "nanobot"\n[limits]\nmax_iterations = 31\nmax_tool_calls = 32\nmax_usd = 33\n');
    const env = { PARLEY__LIMITS__MAX_TOOL_CALLS: "42", PARLEY__LIMITS__MAX_USD: "43", ...set("limits.max_usd=53.5") };
    const { settings, originOf } = explainSettings(path, env);
    const { limits } = settings;
    assert.deepEqual([limits.max_iterations, limits.max_tool_calls, limits.max_usd], [31, 42, 53.5]);
    assert.equal(settings.agent.max_concurrent_turns, 1);
    assert.equal(originOf(["limits", "max_iterations"]), path);
    assert.equal(originOf(["limits", "max_tool_calls"]), "PARLEY__LIMITS__MAX_TOOL_CALLS");
    assert.equal(originOf(["limits", "max_usd"]), "--set limits.max_usd");
    assert.equal(originOf(["agent", "max_concurrent_turns"]), "preset nanobot");
    assert.equal(originOf(["limits", "max_tokens"]), "default");
  });

  test("uses the preset of the layer with the highest precedence", () => {
    const path = file('preset = "nanobot"\n');
    assert.equal(loadSettings(path).subagents.tool_name, "spawn");
    assert.equal(loadSettings(path, { PARLEY_PRESET: "goat" }).subagents.tool_name, "Agent");
    assert.equal(
      loadSettings(path, { PARLEY_PRESET: "goat", ...set("preset=delegate") }).subagents.tool_name,
      "delegate",
    );
  });

  test("merges tables and replaces lists", () => {
    const path = file('preset = "nanobot"\n[permissions]\ndeny = ["exec(curl *)"]\n[profiles.worker]\nmodel = "m"\n');
    const { permissions, profiles } = loadSettings(path);
    assert.deepEqual([permissions.deny, permissions.allow], [["exec(curl *)"], ["*"]]);
    assert.deepEqual([profiles["worker"]?.model, profiles["worker"]?.tools], ["m", ["*"]]);
  });

  test("sets agent.model from PARLEY_MODEL, above the file and below a flag", () => {
    const path = file('[agent]\nmodel = "a"\n');
    assert.equal(loadSettings(path, { PARLEY_MODEL: "b" }).agent.model, "b");
    assert.equal(loadSettings(path, { PARLEY_MODEL: "b", ...set("agent.model=openai:c") }).agent.model, "openai:c");
  });

  test("property: uses the value of the last layer with its source", () => {
    const leaf = fc.oneof(fc.integer(), fc.string(), fc.array(fc.integer(), { maxLength: 2 }));
    const key = fc.constantFrom("a", "b", "__proto__", "toString");
    const table = fc.dictionary(key, fc.oneof(leaf, fc.dictionary(key, leaf, { maxKeys: 3 })), { maxKeys: 3 });
    const layers = fc.array(table, { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(layers, (tables) => {
        const named = tables.map((each, index) => ({ source: String(index), table: each as Table }));
        const walk = (node: unknown, path: string[]) => {
          if (typeof node === "object" && node !== null && !Array.isArray(node)) {
            for (const [name, below] of Object.entries(node)) walk(below, [...path, name]);
            return;
          }
          const source = sourceOf(named, path);
          let value: unknown = tables[Number(source)];
          for (const step of path) value = (value as Table)[step];
          assert.deepEqual(value, node);
        };
        const merged = mergeLayers(named);
        if (Object.keys(merged).length > 0) walk(merged, []);
      }),
    );
  });
});

describe("values of variables and flags", () => {
  // design: 004.31
  test("are parsed as TOML, otherwise as text", () => {
    const env = { PARLEY__TOOLS__ENABLED: '["read"]', PARLEY__AGENT__TIME_ZONE: "Europe/Paris" };
    const { tools, agent, models, output } = loadSettings(undefined, {
      ...env,
      ...set('models.known."claude-x.5".context_window=100000', "output.mode=both"),
    });
    assert.deepEqual([tools.enabled, agent.time_zone, output.mode], [["read"], "Europe/Paris", "both"]);
    assert.equal(models.known["claude-x.5"]?.context_window, 100_000);
  });

  test("cannot set a second key", () => {
    const text = '"x"\nmodel = "y"';
    const { agent } = loadSettings(undefined, { PARLEY__AGENT__SYSTEM_PROMPT: text });
    assert.deepEqual([agent.system_prompt, agent.model], [text, undefined]);
  });

  test("a date is text, and an empty variable is absent", () => {
    const env = { PARLEY__AGENT__SYSTEM_PROMPT: "2026-11-22", PARLEY__AGENT__TIME_ZONE: "" };
    const { agent } = loadSettings(undefined, env);
    assert.deepEqual([agent.system_prompt, agent.time_zone], ["2026-11-22", "UTC"]);
  });
});

describe("refused settings", () => {
  // design: 001.27
  test("an unknown key with a suggestion and its source, all problems at once", () => {
    const path = file('preset = "goat"\n[limits]\nmax_iteration = 3\n');
    refused(
      path,
      {},
      new RegExp(`${path}:\\n +\\[limits\\] unknown key "max_iteration"; did you mean "max_iterations"`),
    );
    refused(undefined, { PARLEY__LIMTIS__MAX_USD: "2" }, /PARLEY__LIMTIS__MAX_USD:\n.*"limtis"; did you mean "limits"/);
    refused(undefined, set("limits.max_udd=2"), /--set limits\.max_udd:\n.*"max_udd"; did you mean "max_usd"/);
    refused(path, set("limits.max_udd=2"), /"max_iteration"[\s\S]*--set limits\.max_udd:\n.*"max_udd"/);
  });

  test("a wrong value, named with the source of the effective value", () => {
    const path = file("[limits]\nmax_usd = 1\n");
    refused(path, { PARLEY__LIMITS__MAX_USD: "much" }, /^PARLEY__LIMITS__MAX_USD:\n +limits\.max_usd: .*number/);
    refused(path, { PARLEY_PRESET: "gaot" }, /^PARLEY_PRESET:\n +preset: .*"goat"/);
  });

  test("a value outside of an enum, with the closest value or all of them", () => {
    refused(
      undefined,
      set("preset=gota"),
      /--preset:\n +preset: "gota" is not one of singleton,.*; did you mean "goat"\?/,
    );
    refused(
      undefined,
      set("permissions.mode=defualt"),
      /permissions\.mode: "defualt" is not one of .*did you mean "default"/,
    );
    refused(undefined, set("preset=x"), /preset: "x" is not one of singleton, steered, delegate, repl, goat, nanobot$/);
  });

  test("text that is not a setting", () => {
    refused(undefined, set("limits.max_usd"), /--set limits\.max_usd: write it as --set table\.key=value/);
    refused(undefined, set("a b=2"), /"a b" is not a key/);
    refused(undefined, { PARLEY_SET: "limits.max_usd=2" }, /PARLEY_SET: must be a JSON list/);
    refused(undefined, { PARLEY____LIMITS: "2" }, /PARLEY____LIMITS: write it as PARLEY__TABLE__KEY/);
    refused(join(folder, "none.toml"), {}, /cannot read/);
  });
});

// design: preset.1, preset.2, preset.3, preset.4, preset.5, preset.6
test("accepts every preset, by variable and in a file that only names it", () => {
  for (const name of presetNames) {
    assert.deepEqual(parseSettings(`preset = "${name}"`, "test"), loadSettings(undefined, { PARLEY_PRESET: name }));
  }
});
