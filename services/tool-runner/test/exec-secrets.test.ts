// Secrets of commands: which processes receive them, which do not, and how they are masked in output.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { totalmem } from "node:os";
import { test } from "node:test";
import { ParleySettingsSchema } from "@parley/contracts";
import { ConfigError } from "@parley/chassis";
import fc from "fast-check";
import { openExecutor } from "../src/sandbox/executor.ts";
import { defaultExecLimits } from "../src/sandbox/limits.ts";
import { SecretMask, toolSecrets, type ToolSecrets } from "../src/sandbox/secrets.ts";
import { Processes } from "../src/processes/processes.ts";
import { execTool } from "../src/tools/exec.ts";
import { bwrap } from "./support/commands.ts";
import { makeWorkspaceFixture, type WorkspaceFixture } from "./support/workspace-fixture.ts";

const limits = defaultExecLimits(totalmem());

/** The `exec` of a runner with these secrets. */
async function openShell(ground: WorkspaceFixture, setting: "bubblewrap" | "none", secrets: ToolSecrets) {
  const { workspace } = ground;
  const program = bwrap ?? "bwrap";
  const executor = await openExecutor({ workspace, setting, bwrap: program, searchPath: "/usr/bin", limits, secrets });
  const times = { timeoutSeconds: 250, backgroundAfterSeconds: 0, backgroundTimeoutSeconds: 250 };
  const processes = new Processes("here", { maxPerSession: 1, maxInAll: 1 });
  const tool = execTool({ executor, limits, processes, times });
  return async (command: string) => (await ground.call(tool, { command })).content;
}

for (const setting of ["bubblewrap", "none"] as const) {
  const skip = setting === "bubblewrap" && bwrap === undefined ? "no bubblewrap here" : false;
  test(`passes a secret to a command and masks it in the output, isolation ${setting}`, { skip }, async () => {
    await using ground = await makeWorkspaceFixture();
    const value = `value-${randomUUID()}`;
    const run = await openShell(ground, setting, new Map([["NPM_TOKEN", value]]));
    const found = await run(
      'echo "[$NPM_TOKEN]"; printf "%s" "${NPM_TOKEN%????}"; sleep 0.2; echo "${NPM_TOKEN#"${NPM_TOKEN%????}"}"; echo ${#NPM_TOKEN} $PARLEY_CALL$SHLVL',
    );
    assert.match(found, new RegExp(`^\\[\\*\\*\\*\\]\n\\*\\*\\*\n${value.length} `));
    assert.doesNotMatch(found, new RegExp(value));
  });
}

test(
  "exposes no secret in command lines or to other commands' processes",
  { skip: bwrap === undefined ? "no bubblewrap here" : false },
  async () => {
    await using ground = await makeWorkspaceFixture();
    const value = `value-${randomUUID()}`;
    const run = await openShell(ground, "bubblewrap", new Map([["NPM_TOKEN", value]]));
    const other = await openShell(ground, "bubblewrap", new Map());
    const holding = run("touch started; until [ -e over ]; do sleep 0.05; done; echo held ${#NPM_TOKEN}");
    const seen = await other(
      'until [ -e started ]; do sleep 0.05; done; env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline | tr "\\0" "\\n"',
    );
    const lines = readdirSync("/proc").flatMap((pid) => {
      try {
        return /^\d+$/.test(pid) ? [readFileSync(`/proc/${pid}/cmdline`, "utf8")] : [];
      } catch {
        return [];
      }
    });
    await other("touch over");
    assert.match(await holding, new RegExp(`^held ${value.length}\n`));
    assert.match(seen, /^PATH=/m);
    assert.ok(!seen.includes(value) && !seen.includes("NPM_TOKEN"));
    assert.ok(
      lines.some((line) => line.includes("until [ -e over ]")),
      "the command line of the command was inspected",
    );
    assert.deepEqual(
      lines.filter((line) => line.includes(value)),
      [],
    );
  },
);

test("property: masks a value in any chunking, and changes nothing else", () => {
  const piece = fc.constantFrom("secret1", "secret", "secret12", "sec", "ret", " ", "x", "1", "***", "s");
  fc.assert(
    fc.property(fc.array(piece), fc.array(fc.nat({ max: 60 })), (pieces, cuts) => {
      const whole = pieces.join("");
      const mask = new SecretMask(
        new Map([
          ["A", "secret1"],
          ["B", "secret12"],
        ]),
      );
      const at = [0, ...cuts.filter((cut) => cut < whole.length).toSorted((a, b) => a - b), whole.length];
      const shown = at.slice(1).map((end, index) => mask.push(Buffer.from(whole.slice(at[index], end))));
      const said = Buffer.concat([...shown, mask.end()]).toString();
      assert.equal(said, whole.replaceAll(/secret12|secret1/g, "***"));
    }),
  );
});

test("fails the start with the variable's name when a value is missing or too short", () => {
  const named = { NPM_TOKEN: { env: "PARLEY_TOOL_NPM" } };
  const refused = (env: Record<string, string>) => {
    assert.throws(
      () => toolSecrets(named, env),
      (error) => error instanceof ConfigError && /tools\.secrets\.exec\.NPM_TOKEN.*PARLEY_TOOL_NPM/.test(error.message),
    );
  };
  refused({});
  refused({ PARLEY_TOOL_NPM: "" });
  refused({ PARLEY_TOOL_NPM: "short" });
  assert.deepEqual([...toolSecrets(named, { PARLEY_TOOL_NPM: "long enough" })], [["NPM_TOKEN", "long enough"]]);
});

test("rejects reserved variable names and literal values in the settings", () => {
  const read = (exec: unknown) => ParleySettingsSchema.safeParse({ tools: { secrets: { exec } } }).success;
  assert.equal(read({ NPM_TOKEN: { env: "PARLEY_TOOL_NPM" } }), true);
  for (const name of ["PATH", "LD_PRELOAD", "BASH_ENV", "https_proxy", "NODE_OPTIONS", "a b"]) {
    assert.equal(read({ [name]: { env: "PARLEY_TOOL_NPM" } }), false, name);
  }
  assert.equal(read({ NPM_TOKEN: "npm_abc" }), false);
});
