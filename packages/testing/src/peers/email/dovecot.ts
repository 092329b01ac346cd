// A real IMAP server: Dovecot from its Debian package, in a private folder, on a free loopback port.
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { debianBinary, freePort, sharedCacheDir } from "@parley/local";
import { libraryPath } from "./libraries.ts";
import { startServer, type ServerProcess } from "./server-process.ts";
import { giveToServerUser, serverGid, serverNames, serverUid } from "./unprivileged.ts";

/** The folder of its modules is compiled into Dovecot's library; a link with a path of the same length replaces it. */
const compiledFolder = "/usr/lib/dovecot/modules";

export interface Dovecot extends ServerProcess {
  readonly port: number;
  stop(): Promise<void>;
}

/** Serves `<folder>/mail/<user>` to every user with this password. `idle`: whether it has IDLE, by which it reports new mail. */
export async function startDovecot(folder: string, password: string, idle: boolean): Promise<Dovecot> {
  const { root } = await debianBinary("dovecot", "dovecot-imapd", sharedCacheDir);
  const lib = join(root, "usr/lib/dovecot");
  const link = `/tmp/parley-${randomBytes(6).toString("hex")}`;
  symlinkSync(join(lib, "modules"), link);
  const patched = join(folder, "lib");
  for (const path of [patched, join(folder, "dovecot"), join(folder, "mail")]) mkdirSync(path, { recursive: true });
  writeFileSync(join(patched, "libdovecot.so.0"), replaced(readFileSync(join(lib, "libdovecot.so.0.0.0")), link));
  const env = { LD_LIBRARY_PATH: libraryPath(root, [patched]) };
  const port = await freePort();
  const config = join(folder, "dovecot.conf");
  writeFileSync(config, configuration({ folder, lib, port, libraries: env.LD_LIBRARY_PATH, password, idle }));
  giveToServerUser(folder);
  // Dovecot would call the installed doveconf, so its configuration is read by the unpacked one, which then starts it.
  const args = ["-f", "service=master", "-c", config, "-m", "master", "-x", "-e"];
  const dovecot = [join(root, "usr/sbin/dovecot"), "-F", "-c", config];
  const server = await startServer(join(root, "usr/bin/doveconf"), [...args, ...dovecot], { folder, port, env });
  const restart = async (): Promise<void> => {
    rmSync(join(folder, "dovecot/master.pid"), { force: true });
    await server.start();
  };
  const stop = async (): Promise<void> => {
    await server.kill();
    rmSync(link, { force: true });
  };
  return { ...server, port, start: restart, stop };
}

function replaced(library: Buffer, link: string): Buffer {
  const at = library.indexOf(compiledFolder);
  if (at === -1 || link.length !== compiledFolder.length)
    throw new Error(`libdovecot does not contain ${compiledFolder}`);
  library.write(link, at);
  return library;
}

function configuration(options: {
  folder: string;
  lib: string;
  port: number;
  libraries: string;
  password: string;
  idle: boolean;
}): string {
  const { folder, lib, port, libraries, password, idle } = options;
  const { user, group } = serverNames();
  return `
base_dir = ${folder}/dovecot
state_dir = ${folder}/dovecot
libexec_dir = ${lib}
mail_plugin_dir = ${lib}/modules
login_plugin_dir = ${lib}/modules/login
import_environment = LD_LIBRARY_PATH=${libraries}
protocols = imap
listen = 127.0.0.1
ssl = no
disable_plaintext_auth = no
auth_failure_delay = 0
log_path = /dev/stderr
default_internal_user = ${user}
default_internal_group = ${group}
default_login_user = ${user}
first_valid_uid = 1
mail_location = maildir:${folder}/mail/%n
mailbox_list_index = no
auth_username_format = %n
${idle ? "" : "imap_capability = IMAP4rev1 SASL-IR LITERAL+ ENABLE UIDPLUS"}
passdb {
  driver = static
  args = password=${password}
}
userdb {
  driver = static
  args = uid=${serverUid} gid=${serverGid} home=${folder}/mail/%n allow_all_users=yes
}
service imap-login {
  chroot =
  inet_listener imap {
    address = 127.0.0.1
    port = ${port}
  }
  inet_listener imaps {
    port = 0
  }
}
service anvil {
  chroot =
  unix_listener anvil-auth-penalty {
    mode = 0
  }
}
service stats {
  chroot =
}
`;
}
