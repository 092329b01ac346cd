import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parsePermissionRule } from "@parley/contracts";
import fc from "fast-check";
import { propertyRuns } from "@parley/testing/property-runs";
import { parseCall } from "../../src/policy/parsed-call.ts";
import { decidePermission } from "../../src/policy/decide.ts";
import { compileText, escapePattern } from "../../src/policy/pattern.ts";
import { compileRules, type RuleLists } from "../../src/policy/rules.ts";
import type { PermissionTool } from "../../src/policy/tool-traits.ts";
import { bareExec, command, context, decideCommand, walledExec } from "./support.ts";

describe("parsing of rules", () => {
  test("accepts a tool, a tool with a pattern, and a tool wildcard", () => {
    const rules: [string, string, string | null][] = [
      ["exec", "exec", null],
      ["exec(git *)", "exec", "git *"],
      ["exec(echo (a))", "exec", "echo (a)"],
      ["mcp__github__*", "mcp__github__*", null],
      ["*", "*", null],
      [String.raw`exec(echo \\)`, "exec", String.raw`echo \\`],
    ];
    for (const [text, tool, pattern] of rules) assert.deepEqual(parsePermissionRule(text), { rule: { tool, pattern } });
  });

  test("describes each mistake", () => {
    const mistakes: [string, RegExp][] = [
      ["", /name of a tool/],
      ["git *", /name of a tool/],
      ["(git *)", /name of a tool/],
      ["exec(git *", /closes/],
      ["exec(git *) x", /closes/],
      ["exec()", /has an empty pattern/],
      ["mcp__a__b(x)", /matched only by name/],
      ["*(rm *)", /full name of one tool/],
      ["exec(a\\)", /backslash/],
    ];
    for (const [text, problem] of mistakes) {
      const parsed = parsePermissionRule(text);
      assert.ok("problem" in parsed, text);
      assert.match(parsed.problem, problem, text);
    }
  });

  test("ignores an invalid allow rule of a session and requires approval for an invalid deny rule", async () => {
    assert.equal((await decideCommand("git status", { allow: ["exec(git"] })).decision, "ask");
    const call = await command("git status", walledExec);
    assert.equal(decidePermission(call, context()).decision, "allow");
    assert.equal(decidePermission(call, context({ rules: compileRules({ deny: ["exec(rm"] }) })).decision, "ask");
  });
});

test("matches an escaped text only by itself", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "binary" }), (text, other) => {
      const matches = compileText(escapePattern(text));
      assert.ok(matches(text));
      assert.equal(matches(other), other === text);
    }),
  );
});

test("matches a backtracking pattern in bounded time", () => {
  const begun = process.cpuUsage();
  assert.equal(compileText(`${"*a".repeat(50)}b`)("a".repeat(100_000)), false);
  assert.ok(process.cpuUsage(begun).user < 5_000_000);
});

describe("commands", () => {
  // design: 003.21
  test("match a deny rule in every spelling and inside every wrapper", async () => {
    for (const line of [
      "rm -rf x",
      "rm",
      "/bin/rm x",
      "'r'm x",
      "git status && rm x",
      "X=1 rm x",
      "sudo rm x",
      "bash -c 'rm x'",
      "ls | xargs rm",
      "find . -exec rm {} ';'",
      "echo $(rm x)",
      "eval 'rm x'",
      "if rm x",
      'sh -c "$X; rm x"',
      'bash -c "rm $Y"',
    ]) {
      const { decision, rule } = await decideCommand(line, { deny: ["exec(rm *)"], allow: ["exec"] });
      assert.deepEqual({ line, decision, rule }, { line, decision: "deny", rule: "exec(rm *)" });
    }
    assert.equal(
      (await decideCommand("git rm x; farm x", { deny: ["exec(rm *)"], allow: ["exec"] })).decision,
      "allow",
    );
  });

  test("with hidden programs require approval when a deny rule for commands exists", async () => {
    const hidden = await command("$X -rf y", walledExec);
    assert.equal(decidePermission(hidden, context()).decision, "allow");
    const decision = decidePermission(hidden, context({ rules: compileRules({ deny: ["exec(rm *)"] }) }));
    assert.equal(decision.decision, "ask");
    assert.match(decision.reason, /program is known only at run time/);
  });

  // design: 003.21
  test("are allowed when each part is allowed by some rule", async () => {
    const allow = ["exec(git *)", "exec(wc -l)"];
    assert.equal((await decideCommand("git log | wc -l", { allow })).decision, "allow");
    assert.equal((await decideCommand("git log | wc -c", { allow })).decision, "ask");
    assert.equal((await decideCommand("timeout 5 git log", { allow })).decision, "ask");
    assert.equal(
      (await decideCommand("timeout 5 git log", { allow: [...allow, "exec(timeout *)"] })).decision,
      "allow",
    );
    assert.equal((await decideCommand("timeout 5 rm x", { allow: [...allow, "exec(timeout *)"] })).decision, "ask");
  });

  test("with arguments known only at run time do not match an exact rule", async () => {
    assert.equal(
      (await decideCommand("ls | xargs rm x", { allow: ["exec(ls)", "exec(xargs *)", "exec(rm x)"] })).decision,
      "ask",
    );
  });

  test("match rules that use an alias of the tool", async () => {
    assert.equal((await decideCommand("git status", { allow: ["Bash(git *)"] })).decision, "allow");
  });

  const line = fc
    .array(
      fc.constantFrom(
        "rm",
        "git",
        "x",
        " ",
        " ",
        ";",
        "&&",
        "|",
        "$(",
        ")",
        "'",
        '"',
        "`",
        "\n",
        "sudo ",
        "bash -c ",
        "\\",
        ">",
        "$X",
        "(",
        "{",
      ),
      { maxLength: 14 },
    )
    .map((parts) => parts.join(""));
  const modes = fc.constantFrom("default", "accept_edits", "dont_ask", "bypass", "plan", "delegate" as const);

  // design: 003.19
  test("are always denied by a deny rule, for any mode, other rules and hook", async () => {
    await fc.assert(
      fc.asyncProperty(line, modes, fc.boolean(), fc.boolean(), async (text, mode, allowBypass, canAsk) => {
        const lists: RuleLists = { deny: ["exec(rm *)"], allow: ["*", "exec(*)"], ask: [] };
        const call = await command(`rm ${text}`);
        const hook = { decision: "allow", reason: "yes" } as const;
        const decision = decidePermission(
          call,
          context({ mode, allowBypass, canAsk, hook, rules: compileRules(lists) }),
        );
        assert.equal(decision.decision, "deny", text);
      }),
    );
  });

  test("that cannot be parsed are allowed by no pattern", async () => {
    let hidden = 0;
    await fc.assert(
      fc.asyncProperty(line, async (text) => {
        const call = await command(text);
        if (call.argument.kind !== "command" || call.argument.parsed.hidden === null) return;
        hidden += 1;
        const rules = compileRules({ allow: ["exec(*)", "exec(git *)", "exec(rm *)", "write(**)"] });
        assert.notEqual(decidePermission(call, context({ rules })).decision, "allow", text);
      }),
      { numRuns: propertyRuns(1_000) },
    );
    assert.ok(hidden > 100, `${hidden} lines were unparsable: too few for the test to be meaningful`);
  });
});

describe("paths", () => {
  const write: PermissionTool = { name: "write", readOnly: false, risk: "high", effects: [] };
  const decide = async (path: string, rules: RuleLists): Promise<string> =>
    decidePermission(
      await parseCall(write, { path, content: "" }, { roots: ["/srv/work"] }),
      context({ rules: compileRules(rules) }),
    ).decision;

  test("are matched relative to the workspace in every notation", async () => {
    for (const path of ["notes/a.md", "./notes//a.md", "/workspace/notes/a.md", "/srv/work/notes/a.md"]) {
      assert.equal(await decide(path, { allow: ["write(notes/*)"] }), "allow", path);
      assert.equal(await decide(path, { deny: ["write(./notes/*.md)"] }), "deny", path);
    }
    assert.equal(await decide("notes/a/b.md", { allow: ["write(notes/*)"] }), "ask");
    assert.equal(await decide("notes/a/b.md", { allow: ["write(notes/**)"] }), "allow");
    assert.equal(await decide("notes/.hidden", { allow: ["write(notes/*)"] }), "allow");
  });

  test("with .. are allowed by no pattern and denied by their target", async () => {
    for (const path of [
      "notes/../secrets/a",
      "notes/../notes/a",
      "../notes/a",
      "/workspace/../etc/a",
      "/etc/notes/a",
      "notes/x/../../secrets/a",
    ]) {
      assert.equal(await decide(path, { allow: ["write(notes/**)", "write(**)"] }), "ask", path);
    }
    assert.equal(await decide("notes/../secrets/a", { deny: ["write(secrets/*)"], allow: ["write"] }), "deny");
  });

  test("of a patch must all be allowed, and one suffices for a denial", async () => {
    const patch = (...paths: string[]): string =>
      `*** Begin Patch\n${paths.map((path) => `*** Update File: ${path}\n@@\n`).join("")}*** End Patch`;
    const tool: PermissionTool = { name: "apply_patch", readOnly: false, risk: "high" };
    const decidePatch = async (rules: RuleLists, ...paths: string[]): Promise<string> =>
      decidePermission(await parseCall(tool, { patch: patch(...paths) }), context({ rules: compileRules(rules) }))
        .decision;
    assert.equal(await decidePatch({ allow: ["apply_patch(src/*)"] }, "src/a", "src/b"), "allow");
    assert.equal(await decidePatch({ allow: ["apply_patch(src/*)"] }, "src/a", "b"), "ask");
    assert.equal(await decidePatch({ deny: ["apply_patch(b)"] }, "src/a", "b"), "deny");
    assert.equal(await decidePatch({ allow: ["apply_patch(src/*)"] }), "ask");
  });
});

describe("addresses", () => {
  const fetch: PermissionTool = { name: "web_fetch", readOnly: true, risk: "high" };
  const decide = async (url: string, rules: RuleLists): Promise<string> =>
    decidePermission(await parseCall(fetch, { url }), context({ rules: compileRules(rules) })).decision;

  test("are matched by scheme, host and path separately", async () => {
    const allow = ["web_fetch(https://example.com/docs/*)", "web_fetch(*.example.org)"];
    for (const url of [
      "https://example.com/docs/a?b=c",
      "HTTPS://EXAMPLE.com:443/docs/",
      "https://a.example.org/x",
      "http://a.b.example.org",
    ]) {
      assert.equal(await decide(url, { allow }), "allow", url);
    }
    for (const url of [
      "http://example.com/docs/a",
      "https://example.com.evil.net/docs/a",
      "https://example.com@evil.net/docs/a",
      "https://user@example.com/docs/a",
      "https://example.com:8443/docs/a",
      "https://example.com/docs/../a",
      "https://evil.net/a.example.org",
      "https://evil.net/?.example.org",
      "https://evil.net#.example.org",
      "ftp://a.example.org",
      "no address",
    ]) {
      assert.equal(await decide(url, { allow }), "ask", url);
    }
  });

  test("are denied on every port, with a user name, and with a trailing dot of the host", async () => {
    for (const url of [
      "https://evil.net",
      "https://evil.net:8443/a",
      "http://user:pw@EVIL.net/a",
      "https://evil.net./a",
    ]) {
      assert.equal(await decide(url, { deny: ["web_fetch(evil.net)"], allow: ["web_fetch"] }), "deny", url);
    }
  });
});

test("matches MCP tools by their full name", async () => {
  const tool: PermissionTool = { name: "mcp__github__create_issue", readOnly: false };
  const call = await parseCall(tool, { title: "x" });
  const decide = (rules: RuleLists): string => decidePermission(call, context({ rules: compileRules(rules) })).decision;
  assert.equal(decide({}), "ask");
  assert.equal(decide({ allow: ["mcp__github__*"] }), "allow");
  assert.equal(decide({ allow: ["mcp__git__*"] }), "ask");
  assert.equal(decide({ allow: ["mcp__github__*"], deny: ["mcp__*__create_*"] }), "deny");
});

test("denies every call when a deny pattern names a tool without a main argument", async () => {
  const call = await parseCall({ name: "todo", readOnly: false, risk: "high" }, {});
  assert.equal(decidePermission(call, context({ rules: compileRules({ deny: ["todo(x)"] }) })).decision, "deny");
  assert.equal(decidePermission(call, context({ rules: compileRules({ allow: ["todo(x)"] }) })).decision, "ask");
});

test("allows no call by pattern when its main argument is missing", async () => {
  for (const input of [{}, { command: 7 }, "no json", "[]", null]) {
    const call = await parseCall(bareExec, input);
    assert.equal(decidePermission(call, context({ rules: compileRules({ allow: ["exec(*)"] }) })).decision, "ask");
  }
});
