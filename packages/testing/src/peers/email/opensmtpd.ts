// A second real mail server: OpenSMTPD from its Debian package, on a free loopback port, which passes mail for the agent on over LMTP. It
// insists on root, users of its own and fixed paths, so it runs in bubblewrap: preloaded libraries answer its look-ups and its changes of
// user. Its program for LMTP in turn refuses root and gets another user by a namespace of its own.
import { execFile } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { errorMessage } from "@parley/contracts";
import { debianBinary, debianLibrary, freePort, onPath, sharedCacheDir } from "@parley/local";
import { untilValue } from "../../until.ts";
import { authservId, mailDomain } from "./exim.ts";
import { startServer } from "./server-process.ts";
import { swaksWriter, type WriteMail } from "./swaks.ts";
import { asServerUser, giveToServerUser } from "./unprivileged.ts";

export interface OpenSmtpd extends AsyncDisposable {
  readonly port: number;
  /** Writes with the Authentication-Results that a filter of this server would add. */
  write: WriteMail;
  /** Tries deferred mail again immediately instead of after ten seconds. */
  retry(): Promise<void>;
  /** What the server logged, one line each. */
  log(): string;
  untilLogged(pattern: RegExp): Promise<void>;
}

/** Where the unpacked package is inside of bubblewrap. */
const inside = "/mnt";
const lmtpUid = 1_000;

/** Why OpenSMTPD cannot run here, naming the peer; false when it can. The first call downloads it. */
export async function missingOpenSmtpd(): Promise<string | false> {
  const folder = temporaryFolder();
  try {
    const [command, args] = asServerUser(await bubblewrap(), await inSandbox(folder, ["/bin/true"]));
    await promisify(execFile)(command, args);
    return false;
  } catch (error) {
    return `OpenSMTPD does not run here: ${errorMessage(error)}`;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export async function startOpenSmtpd({ lmtpPort }: { lmtpPort: number }): Promise<OpenSmtpd> {
  const folder = temporaryFolder();
  const port = await freePort();
  writeFileSync(
    join(folder, "smtpd.conf"),
    `listen on 127.0.0.1 port ${port} hostname ${authservId}
action "agent" lmtp "127.0.0.1:${lmtpPort}" rcpt-to virtual { "@" = agent }
match from any for domain "${mailDomain}" action "agent"
`,
  );
  const bwrap = await bubblewrap();
  const smtpd = await inSandbox(folder, [`${inside}/usr/sbin/smtpd`, "-d", "-f", "/run/smtpd.conf"]);
  const smtpctl = await inSandbox(folder, [`${inside}/usr/sbin/smtpctl`, "schedule", "all"]);
  const server = await startServer(bwrap, smtpd, { folder, port, env: {} });
  const send = await swaksWriter(folder, port);
  const log = () => server.output();
  return {
    port,
    write: ({ headers = [], ...mail }) => {
      const result = `Authentication-Results: ${authservId}; dmarc=pass header.from=${mailDomain}`;
      return send({ ...mail, headers: [result, ...headers] });
    },
    retry: async () => void (await promisify(execFile)(...asServerUser(bwrap, smtpctl))),
    log,
    untilLogged: async (pattern) => {
      await untilValue(
        () => (pattern.test(log()) ? true : null),
        (check) => server.onOutput(check),
        () => `${String(pattern)}; OpenSMTPD logged:\n${log().slice(-3_000)}`,
      );
    },
    [Symbol.asyncDispose]: async () => {
      await server.kill();
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

function temporaryFolder(): string {
  return realpathSync(mkdtempSync(join(tmpdir(), "parley-opensmtpd-")));
}

async function bubblewrap(): Promise<string> {
  return onPath("bwrap") ?? (await debianBinary("bwrap", "bubblewrap", sharedCacheDir)).path;
}

/** Bubblewrap's arguments that run a program with the paths and users that OpenSMTPD expects; `folder` is its `/run` and has its queue. */
async function inSandbox(folder: string, program: readonly string[]): Promise<string[]> {
  const { root } = await debianBinary("smtpd", "opensmtpd", sharedCacheDir);
  const users = { root: 0, opensmtpd: 0, opensmtpq: 0, agent: lmtpUid };
  const table = (line: (name: string, id: number) => string) =>
    Object.entries(users).map(([name, id]) => `${line(name, id)}\n`);
  const preloaded: string[] = [];
  for (const name of ["nss", "uid"]) {
    const library = await debianLibrary(`lib${name}_wrapper.so`, `lib${name}-wrapper`, sharedCacheDir);
    copyFileSync(library, join(folder, `${name}.so`));
    preloaded.push(`/run/${name}.so`);
  }
  writeFileSync(join(folder, "passwd"), table((name, id) => `${name}:x:${id}:${id}::/:/bin/sh`).join(""));
  writeFileSync(join(folder, "group"), table((name, id) => `${name}:x:${id}:`).join(""));
  const lmtp = join(folder, "mail.lmtp");
  const client = `${inside}/usr/libexec/opensmtpd/mail.lmtp`;
  writeFileSync(lmtp, `#!/bin/sh\nexec unshare --user --map-user=${lmtpUid} ${client} "$@"\n`, { mode: 0o755 });
  mkdirSync(join(folder, "queue"), { recursive: true });
  chmodSync(join(folder, "queue"), 0o711);
  giveToServerUser(folder);
  const variables = {
    LD_PRELOAD: preloaded.join(" "),
    NSS_WRAPPER_PASSWD: "/etc/passwd",
    NSS_WRAPPER_GROUP: "/etc/group",
    UID_WRAPPER: "1",
    UID_WRAPPER_ROOT: "1",
  };
  return [
    ["--die-with-parent", "--unshare-pid", "--unshare-user", "--uid", "0", "--gid", "0", "--cap-add", "ALL"],
    ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--ro-bind", root, inside],
    ["--tmpfs", "/var", "--dir", "/var/lib/opensmtpd/empty", "--bind", join(folder, "queue"), "/var/spool/smtpd"],
    ["--tmpfs", "/tmp", "--bind", folder, "/run", "--symlink", "/run", "/var/run"],
    ["--ro-bind", join(folder, "passwd"), "/etc/passwd", "--ro-bind", join(folder, "group"), "/etc/group"],
    ["--tmpfs", "/usr/libexec", "--ro-bind", lmtp, "/usr/libexec/opensmtpd/mail.lmtp"],
    Object.entries(variables).flatMap(([name, value]) => ["--setenv", name, value]),
    program,
  ].flat();
}
