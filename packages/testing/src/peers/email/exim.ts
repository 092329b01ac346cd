// A real mail server: Exim from its Debian package, in a private folder, on a free loopback port. It delivers to maildirs, or passes mail
// for the agent on over LMTP and repeats a delivery that was deferred.
import { chmodSync, copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { debianBinary, freePort, sharedCacheDir } from "@parley/local";
import { libraryPath } from "./libraries.ts";
import { startServer, type ServerProcess } from "./server-process.ts";
import { giveToServerUser, userVariables } from "./unprivileged.ts";

/** The identity in the Authentication-Results of this server. */
export const authservId = "mx.test.local";
export const mailDomain = "test.local";

export interface EximOptions {
  folder: string;
  /** The people with a mailbox. */
  people: readonly string[];
  /** The mailbox of the agent is in a maildir, or on this LMTP port. */
  agent: "maildir" | { lmtpPort: number };
  /** Password of the user `agent` for submission. */
  password: string;
}

export interface Exim extends ServerProcess {
  readonly port: number;
}

export async function startExim(options: EximOptions): Promise<Exim> {
  const { root } = await debianBinary("exim4", "exim4-daemon-light", sharedCacheDir);
  const { folder } = options;
  // A copy, because the unpacked program has the set-user-id bit, with which the loader ignores preloaded libraries.
  const program = join(folder, "exim4");
  copyFileSync(join(root, "usr/sbin/exim4"), program);
  chmodSync(program, 0o755);
  for (const name of ["spool", "log", "mail"]) mkdirSync(join(folder, name), { recursive: true });
  const port = await freePort();
  const config = join(folder, "exim.conf");
  writeFileSync(config, configuration(options, program, port));
  const env = { LD_LIBRARY_PATH: libraryPath(root), ...(await userVariables(folder, "Debian-exim")) };
  giveToServerUser(folder);
  const server = await startServer(program, ["-bdf", "-q1s", "-C", config], { folder, port, env });
  return Object.assign(server, { port });
}

function configuration({ folder, people, agent, password }: EximOptions, program: string, port: number): string {
  const maildirs = agent === "maildir" ? [...people, "agent"] : people;
  return `
exim_path = ${program}
keep_environment = LD_PRELOAD : LD_LIBRARY_PATH : NSS_WRAPPER_PASSWD : NSS_WRAPPER_GROUP
spool_directory = ${folder}/spool
log_file_path = ${folder}/log/%slog
primary_hostname = ${authservId}
local_interfaces = <; 127.0.0.1
daemon_smtp_ports = ${port}
tls_advertise_hosts =
host_lookup =
rfc1413_hosts =
never_users =
deliver_drop_privilege = true
auth_advertise_hosts = *
message_size_limit = 60M
acl_smtp_rcpt = recipient
acl_smtp_data = content
begin acl
recipient:
  accept domains = ${mailDomain}
         local_parts = ${[...people, "agent"].join(" : ")}
  deny message = no such mailbox
content:
  accept remove_header = Authentication-Results
         add_header = :at_start:Authentication-Results: ${authservId}; dmarc=\${if eqi{\${domain:$sender_address}}{\${domain:$h_From:}}{pass}{fail}} header.from=\${domain:$h_From:}
begin routers
${agent === "maildir" ? "" : "agent:\n  driver = manualroute\n  local_parts = agent\n  transport = lmtp\n  route_list = * 127.0.0.1\n  self = send\n"}
maildir:
  driver = accept
  local_parts = ${maildirs.join(" : ")}
  transport = maildir
begin transports
${agent === "maildir" ? "" : `lmtp:\n  driver = smtp\n  protocol = lmtp\n  port = ${agent.lmtpPort}\n  allow_localhost\n  return_path_add\n`}
maildir:
  driver = appendfile
  maildir_format
  directory = ${folder}/mail/$local_part_data
  create_directory
  return_path_add
begin retry
* * F,1d,1s
begin rewrite
begin authenticators
plain:
  driver = plaintext
  public_name = PLAIN
  server_condition = \${if and{{eq{$auth2}{agent}}{eq{$auth3}{${password}}}}}
  server_set_id = $auth2
`;
}
