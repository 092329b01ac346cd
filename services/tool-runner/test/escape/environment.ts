// Attempts to read secrets from the tool-runners' environment, and to make that environment execute something.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { attempt } from "./ledger.ts";
import { canary, preload, type EscapeFixture } from "./fixture.ts";

export function environmentAttempts(fixture: () => EscapeFixture): void {
  const hasCanary = (found: string) => found.includes(canary) || /PARLEY_NATS_URL|nats:\/\//.test(found);

  attempt("a command prints its environment", "bubblewrap", async () => {
    assert.ok(!hasCanary(await fixture().raid("env; export -p; tr '\\0' '\\n' < /proc/self/environ")));
  });

  attempt("a command reads the environment of the tool-runners, by their pids", "bubblewrap", async () => {
    for (const { pid } of fixture().runners) {
      assert.ok(readFileSync(`/proc/${pid}/environ`, "utf8").includes(canary), "the secret is readable from outside");
      assert.ok(
        !hasCanary(await fixture().raid(`cat /proc/${pid}/environ /proc/${pid}/task/*/environ | tr '\\0' '\\n'`)),
      );
    }
  });

  attempt("a command reads the environment and command line of every process it can name", "bubblewrap", async () => {
    const found = await fixture().raid(
      "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline | tr '\\0' '\\n'; cat /proc/$PPID/environ",
    );
    assert.ok(!hasCanary(found));
    assert.doesNotMatch(found, /main\.ts/);
  });

  attempt("a command reads the memory of a tool-runner", "bubblewrap", async () => {
    const [first] = fixture().runners;
    const reads = ["1", String(first?.pid)].map(
      (pid) => `head -c 1000 /proc/${pid}/mem; cat /proc/${pid}/maps /proc/${pid}/auxv`,
    );
    const found = await fixture().raid(
      `${reads.join("; ")}; perl -e 'syscall(101, 16, ${first?.pid}, 0, 0) == 0 and print "ATTACHED"'`,
    );
    assert.doesNotMatch(found, /ATTACHED|\/node\b/);
  });

  attempt("the runner's LD_PRELOAD reaches a command", "bubblewrap", async (t) => {
    if (!existsSync(preload)) t.diagnostic(`${preload} is missing here; only the variable is checked`);
    const found = await fixture().raid('echo "[$LD_PRELOAD]"; cat /proc/self/maps; cat /proc/1/maps');
    assert.match(found, /^\[\]$/m);
    assert.doesNotMatch(found, /libm\.so/);
  });

  attempt("the runner's BASH_ENV and ENV are run before a command", "bubblewrap", async () => {
    await fixture().raid("bash -c true; sh -c true");
    assert.equal(existsSync(join(fixture().outside, "started-by-bash")), false);
  });

  attempt("descriptors of the runner are inherited by a command", "bubblewrap", async () => {
    const found = await fixture().raid("readlink /proc/self/fd/* /proc/1/fd/* /proc/$PPID/fd/*");
    assert.doesNotMatch(found, /eventpoll|workspace\/\.|outside|\.ts\b/);
    // One pair of sockets is the command's own output; a second one would belong to another process.
    assert.ok(new Set(found.match(/socket:\[\d+\]/g)).size <= 1, found);
  });

  attempt(
    "programs planted in the workspace run outside the sandbox, as cat, env, sh or bwrap",
    "bubblewrap",
    async () => {
      const { workspace, outside } = fixture();
      for (const name of ["cat", "env", "sh", "bash", "bwrap", "grep", "kill"]) {
        await writeFile(
          join(workspace, name),
          `#!/bin/sh\necho ${name} >> ${outside}/planted\nexec /bin/${name} "$@"\n`,
        );
        await chmod(join(workspace, name), 0o755);
      }
      await writeFile(join(workspace, ".bashrc"), `echo rc >> ${outside}/planted\n`);
      await writeFile(join(workspace, ".profile"), `echo profile >> ${outside}/planted\n`);
      await fixture().raid("PATH=.:$PATH cat /dev/null");
      await fixture().raid("true");
      assert.equal(existsSync(join(outside, "planted")), false);
    },
  );

  attempt("a command sets variables for the next one", "bubblewrap", async () => {
    await fixture().raid(
      "export LD_PRELOAD=/workspace/x.so BASH_ENV=/workspace/evil; echo 'echo LEFT' > evil; alias ls='echo LEFT'",
    );
    assert.doesNotMatch(await fixture().raid("env; ls > /dev/null"), /LEFT|evil/);
  });
}
