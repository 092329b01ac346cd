// Attempts of commands on /proc, /sys, namespaces, mounts and devices, and with workspace files that are dangerous outside.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { existsSync, lstatSync, readdirSync, readFileSync, statSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { attempt } from "./ledger.ts";
import { canary, isAlive, type EscapeFixture } from "./fixture.ts";

export function kernelAttempts(fixture: () => EscapeFixture): void {
  const finds = async (command: string) => {
    assert.ok(!(await fixture().raid(command)).includes(canary));
  };

  attempt("a command reads a file outside by its path", "bubblewrap", async () => {
    assert.ok(readFileSync(join(fixture().outside, "secret.txt"), "utf8").includes(canary));
    await finds(`cat ${fixture().outside}/secret.txt /workspace/../outside/secret.txt; cat ../outside/secret.txt`);
  });

  for (const root of ["/proc/1/root", "/proc/self/root", "/proc/1/cwd/..", "/proc/self/cwd/..", "/proc/$PPID/root"]) {
    attempt(`a command reads a file outside through ${root}`, "bubblewrap", async () => {
      await finds(
        `cat ${root}${fixture().outside}/secret.txt; cat ${root}/outside/secret.txt; ls -R ${root}/root ${root}/home`,
      );
    });
  }

  attempt("a command reads a file outside through an open directory", "bubblewrap", async () => {
    await finds(
      `for fd in /proc/self/fd/* /proc/1/fd/* /dev/fd/*; do cat $fd/../outside/secret.txt $fd/../../outside/secret.txt; done`,
    );
  });

  attempt("a command finds the checkpoints and the MCP tokens", "bubblewrap", async () => {
    for (const name of [".workspace-checkpoints", ".workspace-mcp"]) {
      assert.ok(readFileSync(join(fixture().workspace, "..", name, "secret.txt"), "utf8").includes(canary));
      await finds(
        `cat ../${name}/secret.txt ${fixture().workspace}/../${name}/secret.txt; find / \\( -path /proc -o -path /sys -o -path /usr \\) -prune -o -name secret.txt -exec cat {} +`,
      );
    }
  });

  for (const setting of ["kernel/core_pattern", "vm/overcommit_memory", "kernel/hostname", "fs/suid_dumpable"]) {
    attempt(`a command writes /proc/sys/${setting}`, "bubblewrap", async () => {
      const before = readFileSync(`/proc/sys/${setting}`, "utf8");
      const path = `/proc/sys/${setting}`;
      await fixture().raid(
        `echo 1 > ${path}; mount -o remount,rw /proc/sys; printf '|/workspace/x' > ${path}; mount -t proc p /mnt; echo 1 > /mnt/sys/${setting}`,
      );
      assert.equal(readFileSync(path, "utf8"), before);
    });
  }

  attempt("a command changes the machine's name", "bubblewrap", async () => {
    const before = hostname();
    await fixture().raid("hostname escaped; perl -e 'syscall(170, q(escaped), 7)'");
    assert.equal(hostname(), before);
  });

  attempt("a command finds control groups or /sys to change its limits", "bubblewrap", async () => {
    const found = await fixture().raid(
      "ls /sys/fs/cgroup /sys/kernel && echo FOUND; mount -t cgroup2 c /mnt && echo FOUND; mount -t sysfs s /mnt && echo FOUND",
    );
    assert.doesNotMatch(found, /FOUND/);
  });

  for (const [what, command] of [
    ["a user namespace of its own", "unshare -U true && echo MADE"],
    ["a user namespace with mounts", "unshare -Urm sh -c 'mount -t tmpfs t /mnt && echo MADE'"],
    ["a user namespace by the call itself", "perl -e 'syscall(272, 0x10000000) == 0 and print q(MADE)'"],
    ["a network or process namespace", "unshare -n true && echo MADE; unshare -p -f true && echo MADE"],
  ] as const) {
    attempt(`a command makes ${what}`, "bubblewrap", async () => {
      assert.doesNotMatch(await fixture().raid(command), /MADE/);
    });
  }

  attempt("a command enters the namespaces of the tool-runner", "bubblewrap", async () => {
    const [first] = fixture().runners;
    await finds(
      ["1", first?.pid, "$PPID"]
        .map(
          (pid) => `nsenter -t ${pid} -a cat ${fixture().outside}/secret.txt; nsenter -t ${pid} -m -U true && echo $?`,
        )
        .join("\n"),
    );
  });

  attempt("a command mounts, binds, remounts, or changes its root", "bubblewrap", async () => {
    const found = await fixture().raid(
      [
        "mount --bind / /mnt",
        "mount -o remount,rw /usr",
        "mount -o remount,bind,rw /",
        "umount /proc/sys",
        "umount /workspace",
        "chroot /proc/1/root true",
        "pivot_root . .",
      ]
        .map((each) => `${each} && echo DONE`)
        .join("\n"),
    );
    assert.doesNotMatch(found, /DONE/);
  });

  attempt("a command writes to the system", "bubblewrap", async () => {
    const name = `escaped-${randomUUID()}`;
    const paths = ["/usr/bin/", "/etc/", "/", "/lib/", "/dev/", "/proc/"].map((folder) => folder + name);
    await fixture().raid(
      `for f in ${paths.join(" ")}; do echo x > $f; done; echo 'root2::0:0::/:/bin/sh' >> /etc/passwd`,
    );
    for (const path of paths) assert.equal(existsSync(path), false, path);
    const etc = join(tmpdir(), `parley-etc-${process.getuid?.() ?? 0}`, "passwd");
    if (existsSync(etc)) assert.doesNotMatch(readFileSync(etc, "utf8"), /root2/);
    assert.doesNotMatch(readFileSync("/etc/passwd", "utf8"), /root2/);
  });

  attempt("files in /tmp and /dev/shm are visible to others", "bubblewrap", async () => {
    const name = `parley-escaped-${randomUUID()}`;
    await fixture().raid(`echo x > /tmp/${name}; echo x > /dev/shm/${name}`);
    assert.equal(existsSync(`/tmp/${name}`), false);
    assert.equal(existsSync(`/dev/shm/${name}`), false);
    assert.ok(!(await fixture().raid("ls /tmp /dev/shm")).includes(name));
  });

  attempt("a command makes a device in the workspace", "bubblewrap", async () => {
    await fixture().raid("mknod disk b 254 0; mknod memory c 1 1; mknod zero c 1 5");
    for (const name of ["disk", "memory", "zero"]) assert.equal(existsSync(join(fixture().workspace, name)), false);
  });

  attempt(
    "a command leaves a set-user-ID or set-group-ID program of the runner's user in the workspace",
    "bubblewrap",
    async () => {
      await fixture().raid(
        [
          "cp /bin/true one; chmod 4755 one",
          "cp /bin/true two; chmod u+s,g+s two",
          "install -m 6755 /bin/true three",
          "perl -MFcntl -e 'sysopen(my $f, q(four), O_WRONLY | O_CREAT, 06777)'",
          "perl -e 'open(my $f, q(>), q(five)); syscall(91, fileno($f), 06755)'",
          "perl -e 'open(my $f, q(>), q(six)); syscall(268, -100, q(six), 06755); syscall(452, -100, q(six), 06755, 0)'",
          "perl -e 'syscall(85, q(seven), 06755); syscall(133, q(eight), 0106755, 0)'",
          "umask 0; mkdir shared; chmod 755 one; ls -l one",
        ].join("\n"),
      );
      const files = readdirSync(fixture().workspace).filter((name) =>
        lstatSync(join(fixture().workspace, name)).isFile(),
      );
      assert.ok(
        files.includes("one") && (statSync(join(fixture().workspace, "one")).mode & 0o777) === 0o755,
        "ordinary modes can be set",
      );
      for (const name of files) assert.equal(statSync(join(fixture().workspace, name)).mode & 0o6000, 0, name);
    },
  );

  attempt("a hard link brings a system file, or one of /etc, into the workspace", "bubblewrap", async () => {
    const before = statSync("/usr/bin/env").nlink;
    await fixture().raid("ln /usr/bin/env env-linked; ln /etc/passwd passwd-linked; ln /proc/1/environ environ-linked");
    assert.equal(statSync("/usr/bin/env").nlink, before);
    assert.equal(existsSync(join(fixture().workspace, "passwd-linked")), false);
  });

  attempt("a command uses kernel keyrings, or opaque system calls", "bubblewrap", async () => {
    const found = await fixture().raid(
      "perl -e 'for my $call (248, 249, 250, 425, 437) { my $r = syscall($call, 0, 0, 0, 0, 0); print \"DONE $call\\n\" if $r >= 0 }'",
    );
    assert.doesNotMatch(found, /DONE/);
  });

  attempt("a command kills every process it can name, the tool-runners by their pids", "bubblewrap", async () => {
    const pids = fixture().runners.map(({ pid }) => pid);
    await fixture().raid(
      `kill -9 ${pids.join(" ")}; perl -e 'kill 9, ${pids.join(", ")}, -${pids[0]}, ${process.pid}'`,
    );
    // This ends the raid's own shell as well, so it returns nothing.
    await fixture().call("exec", "once", { command: "kill -9 -1" });
    for (const pid of pids) assert.ok(isAlive(pid));
    assert.match(await fixture().call("exec", "once", { command: "echo alive" }), /^alive/);
  });
}
