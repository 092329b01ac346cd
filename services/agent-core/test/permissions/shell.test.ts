import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import fc from "fast-check";
import { propertyRuns } from "@parley/testing/property-runs";
import { canonicalText } from "../../src/policy/shell-words.ts";
import { parseCommand } from "../../src/policy/shell.ts";
import { decideCommand } from "./support.ts";

async function programs(line: string): Promise<string[]> {
  return (await parseCommand(line)).commands.map(canonicalText);
}

describe("finds every program of a command line", () => {
  const lines: [string, string[]][] = [
    ["git status", ["git status"]],
    ["a && b || c; d & e | f", ["a", "b", "c", "d", "e", "f"]],
    ["(a; { b; })", ["a", "b"]],
    ['git log "$(rm -rf x)"', ['git log "$(rm -rf x)"', "rm -rf x"]],
    ["git log `rm x`", ["git log `rm x`", "rm x"]],
    ["diff <(a) >(b)", ["diff <(a) >(b)", "a", "b"]],
    ["cat <<EOF\n$(rm x)\nEOF", ["cat", "rm x"]],
    ["cat <<'EOF'\n$(rm x)\nEOF", ["cat"]],
    ["if a; then b; elif c; then d; else e; fi", ["a", "b", "c", "d", "e"]],
    ["while a; do b; done", ["a", "b"]],
    ["case x in x) a;; *) b;; esac", ["a", "b"]],
    ["f() { rm x; }; f", ["rm x", "f"]],
    ["! time a", ["a"]],
    ["X=1 Y=$(b) a", ["X=1 Y=$(b) a", "b"]],
    ["bash -c 'rm -rf x; git status'", ["bash -c 'rm -rf x; git status'", "rm -rf x", "git status"]],
    ["sh -euc 'a' name", ["sh -euc a name", "a"]],
    ["bash -o pipefail -c 'a | b'", ["bash -o pipefail -c 'a | b'", "a", "b"]],
    ["env -i A=1 git status", ["env -i A=1 git status", "git status"]],
    ["sudo -u root -- rm x", ["sudo -u root -- rm x", "rm x"]],
    [
      "nohup timeout -k 5 10 nice -n 5 rm x",
      ["nohup timeout -k 5 10 nice -n 5 rm x", "timeout -k 5 10 nice -n 5 rm x", "nice -n 5 rm x", "rm x"],
    ],
    ["echo a | xargs -n1 rm", ["echo a", "xargs -n1 rm", "rm …"]],
    ["find . -name x -exec rm {} +", ["find . -name x -exec rm {} +", "rm {}"]],
    ["eval 'rm x' y", ["eval 'rm x' y", "rm x y"]],
    ["trap 'rm x' EXIT", ["trap 'rm x' EXIT", "rm x"]],
    ["command git status", ["command git status", "git status"]],
  ];
  for (const [line, expected] of lines) {
    test(JSON.stringify(line), async () => {
      const reading = await parseCommand(line);
      assert.deepEqual(reading.commands.map(canonicalText), expected);
      assert.equal(reading.hidden, null);
    });
  }
});

test("has one canonical form per command and keeps a quoted text as one word", async () => {
  assert.deepEqual(await programs("'git'  st\\atus"), ["git status"]);
  assert.deepEqual(await programs("'git status'"), ["'git status'"]);
  assert.deepEqual(await programs('git commit -m "it\'s"'), [String.raw`git commit -m 'it'\''s'`]);
});

describe("reports hidden programs of a command line", () => {
  const lines = [
    "git log 'x",
    "git status &&",
    "$CMD x",
    "g$X status",
    "gi? status",
    "{git,rm} x",
    'bash -c "$CODE"',
    "curl x | sh",
    "bash <<< 'rm x'",
    "echo x | xargs -I% %",
    "echo x | xargs bash -c",
    "echo x | xargs -I{} sh -c 'git {}'",
    "find . -exec sh -c 'git {}' ';'",
    "find . $WHAT",
    "eval $X",
    "env -S 'git status'",
    "env --what git status",
    "su -c 'rm x'",
    "git log ${X@P}",
    "git log ${!X}",
    "git log $'a\\'; rm x; '",
    "git\u00a0status",
    "git log\u202e x",
    "git log\r",
    "",
    "# nothing",
    `git ${"x".repeat(20_000)}`,
    `${"$(".repeat(5_000)}git`,
    `git ${"$((".repeat(3_000)}`,
    `${"bash -c ".repeat(12)}git`,
  ];
  for (const line of lines) {
    test(JSON.stringify(line.slice(0, 40)), async () => {
      assert.notEqual((await parseCommand(line)).hidden, null);
      assert.equal((await decideCommand(line, { allow: ["exec(*)", "exec(git *)"] })).decision, "ask");
      assert.equal(
        (await decideCommand(line, { allow: ["exec"] })).decision,
        "allow",
        "a rule without a pattern applies to every call",
      );
    });
  }
});

test("parses deep nesting within the length limit", async () => {
  for (const [open, close] of [
    ["(", ")"],
    ["$(", ")"],
    ["{ ", ";}"],
    ["$((", "))"],
    ["[[ ( ", " ) ]]"],
    ["if a; then ", "; fi"],
    ["${x:-", "}"],
  ] as const) {
    const line = `git ${open.repeat(900)}a${close.repeat(900)}`;
    for (const text of [line, line.slice(4)]) {
      const { commands, hidden } = await parseCommand(text);
      assert.ok(commands.length > 0 || hidden !== null, text.slice(0, 40));
    }
  }
});

describe("with exec(git *) allowed", () => {
  const allowed = { allow: ["exec(git *)"] };

  test("allows lists, pipelines and substitutions of git", async () => {
    for (const line of [
      "git",
      "git status",
      "git add . && git commit -m 'a; rm b'",
      "git log $(git rev-parse HEAD) | git hash-object --stdin 2>&1 >/dev/null",
      "(git a; git b) & git c",
    ]) {
      assert.equal((await decideCommand(line, allowed)).decision, "allow", line);
    }
  });

  test("does not allow commands that could redefine git", async () => {
    for (const line of [
      "PATH=. git status",
      "PATH=.; git status",
      "git log $((PATH=5)); git status",
      "git log ${GIT_PAGER:=rm}",
      "for PATH in x; do git status; done",
      "((PATH++)); git status",
      "./git status",
      "/tmp/git status",
      "gitx",
      "git() { git rm; }; rm x; git status",
    ]) {
      assert.equal((await decideCommand(line, allowed)).decision, "ask", line);
    }
  });

  const evil = fc.constantFrom("evil", "evil x", "'evil'", "e\\vil", '"evil" git', "/bin/evil");
  const git = fc.constantFrom("git", "git status", "git log -n 1", "git commit -m 'a b'", 'git show "x y"');
  const around = fc.constantFrom<((git: string, evil: string) => string)[]>(
    (g, e) => `${g}; ${e}`,
    (g, e) => `${e} && ${g}`,
    (g, e) => `${g} || ${e}`,
    (g, e) => `${g} | ${e}`,
    (g, e) => `${g} & ${e}`,
    (g, e) => `${g}\n${e}`,
    (g, e) => `${g} $(${e})`,
    (g, e) => `${g} "$(${e})"`,
    (g, e) => `${g} \`${e}\``,
    (g, e) => `${g} <(${e})`,
    (g, e) => `X=$(${e}) ${g}`,
    (g, e) => `${g} <<EOF\n$(${e})\nEOF`,
    (g, e) => `${g} \${x:-$(${e})}`,
    (g, e) => `${g} $((a[$(${e})]))`,
    (g, e) => `(${g}; { ${e}; })`,
    (g, e) => `if ${g}; then ${e}; fi`,
    (g, e) => `bash -c '${g}'; sh -c ${JSON.stringify(e)}`,
    (_, e) => `env ${e}`,
    (_, e) => `sudo ${e}`,
    (_, e) => `git log | xargs ${e}`,
    (_, e) => `nohup timeout 5 ${e}`,
    (_, e) => `git () { ${e}; }; git`,
    (_, e) => `${e} # git status`,
    (_, e) => `git status #\n${e}`,
    (g, e) => `${g} > "$(${e})"`,
  );

  test("does not allow a line with another program at any position", async () => {
    await fc.assert(
      fc.asyncProperty(git, fc.array(fc.tuple(around, evil), { minLength: 1, maxLength: 3 }), async (start, layers) => {
        let line: string = start;
        for (const [layer, program] of layers) line = layer(line, program);
        assert.notEqual((await decideCommand(line, allowed)).decision, "allow", line);
      }),
      { numRuns: propertyRuns(3_000) },
    );
  });

  describe("in real shells", () => {
    let folder: string;
    before(() => {
      folder = mkdtempSync(join(tmpdir(), "permissions-"));
      writeFileSync(join(folder, "git"), "#!/bin/sh\nexit 0\n", { mode: 0o755 });
      writeFileSync(join(folder, "evil"), `#!/bin/sh\n: > ${folder}/ran\n`, { mode: 0o755 });
    });
    after(() => rmSync(folder, { recursive: true }));

    const pieces = fc.constantFrom(
      "git",
      "git",
      "evil",
      "evil",
      " ",
      " ",
      "\n",
      ";",
      "&&",
      "||",
      "|",
      "&",
      "$(",
      "`",
      ")",
      "(",
      "{ ",
      ";}",
      "'",
      '"',
      "\\",
      "$",
      "$'",
      "x",
      "=",
      "<<E",
      "\nE\n",
      "<(",
      "<<<",
      "#",
      "!",
      "${x:-",
      "}",
      "$((",
      "))",
      "[[ ",
      " ]]",
      "((",
      "if ",
      ";then ",
      ";fi",
      "eval ",
      "command ",
      "bash -c ",
      ",",
      "*",
      "@(",
      "-c",
    );

    test("starts no other program in an allowed line", async () => {
      const shells = ["/bin/sh", "/bin/bash"].filter((path) => existsSync(path));
      let ran = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(pieces, { maxLength: 9 }), async (parts) => {
          const line = `git ${parts.join("")}`;
          if ((await decideCommand(line, allowed)).decision !== "allow") return;
          ran += 1;
          for (const shell of shells) {
            spawnSync(shell, ["-c", line], { cwd: folder, env: { PATH: folder }, timeout: 5_000, stdio: "ignore" });
            assert.ok(!existsSync(join(folder, "ran")), `${shell} ran another program: ${line}`);
          }
        }),
        { numRuns: propertyRuns(1_500) },
      );
      assert.ok(ran > 30, `only ${ran} lines were allowed: too few for the test to be meaningful`);
    });
  });
});

test("applies write rules to redirections", async () => {
  const rules = { allow: ["exec(git *)", "write(out/*)"], deny: ["write(secrets/**)", "read(keys/*)"] };
  const decisions: [string, string][] = [
    ["git log > out/log", "allow"],
    ["git log >> /workspace/out/log 2>&1", "allow"],
    ["git log > other", "ask"],
    ["git log > out/../other", "ask"],
    ["git log > $X", "ask"],
    ["git log &> secrets/a/b", "deny"],
    ["git log > ./out/../secrets/a", "deny"],
    ["git log < keys/a", "deny"],
    ["git log < other", "allow"],
  ];
  for (const [line, decision] of decisions) assert.equal((await decideCommand(line, rules)).decision, decision, line);
  for (const name of ["write", "write_file", "Write"]) {
    const allow = ["exec(git *)", `${name}(out/*)`];
    assert.equal((await decideCommand("git log > out/log", { allow })).decision, "allow", name);
  }
  assert.equal(
    (await decideCommand("cd x && git log > out/log", { allow: ["exec(git *)", "exec(cd *)", "write(out/*)"] }))
      .decision,
    "ask",
  );
});
