// A real IRC server: InspIRCd from its Debian package, unpacked in a private folder, on a free loopback port.
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { debianBinary, freePort, sharedCacheDir } from "@parley/local";
import { withParentDeathSignal } from "./parent-death-signal.ts";
import { acceptsConnections } from "./port.ts";

const modules = [
  "cap",
  "ircv3",
  "ircv3_accounttag",
  "ircv3_batch",
  "ircv3_capnotify",
  "ircv3_ctctags",
  "ircv3_echomessage",
  "ircv3_labeledresponse",
  "ircv3_msgid",
  "ircv3_servertime",
  "chanhistory",
];

export interface InspIrcdOptions {
  /** Default: a free port. */
  port?: number;
  /** Extensions beyond RFC 1459: message ids, echoes and so on. Default true; false makes it behave like an old server. */
  modern?: boolean;
  /** Sends the last messages to a user who joins a channel. Default false. */
  history?: boolean;
  /** TLS with a self-signed certificate for `localhost`. Default false. */
  tls?: boolean;
}

export interface InspIrcd extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  /** The server's certificate as PEM, when TLS is on. */
  readonly certificate: string | null;
  readonly pid: number;
  /** Kills the server without a goodbye: every connection is cut. */
  kill(): Promise<void>;
  /** Starts the server again on the same port after `kill` or `stop`. */
  start(): Promise<void>;
  /** Pauses and resumes the server: connections stay open, nothing is answered. */
  pause(): void;
  resume(): void;
  stop(): Promise<void>;
}

export async function startInspIrcd(options: InspIrcdOptions = {}): Promise<InspIrcd> {
  const { path, root } = await debianBinary("inspircd", "inspircd", sharedCacheDir);
  const home = realpathSync(mkdtempSync(join(tmpdir(), "parley-inspircd-")));
  const port = options.port ?? (await freePort());
  const config = join(home, "inspircd.conf");
  for (const folder of ["data", "log", "run"]) mkdirSync(join(home, folder));
  const certificate = options.tls === true ? await selfSigned(path, home) : null;
  writeFileSync(config, configuration({ ...options, port }, home, join(root, "usr/lib/inspircd/modules")));
  let child: ChildProcess | null = null;

  const start = async (): Promise<void> => {
    const asRoot = process.getuid?.() === 0 ? ["--runasroot"] : [];
    const [command, args] = withParentDeathSignal(path, [...asRoot, "--nofork", "--config", config]);
    const started = spawn(command, args, { cwd: home, stdio: ["ignore", "pipe", "pipe"] });
    child = started;
    let output = "";
    for (const stream of [started.stdout, started.stderr])
      stream.on("data", (part: Buffer) => (output += part.toString()));
    const until = performance.now() + 60_000;
    while (!(await acceptsConnections(port))) {
      if (started.exitCode !== null || performance.now() > until) {
        started.kill("SIGKILL");
        throw new Error(`InspIRCd did not start:\n${output.slice(-2_000)}`);
      }
      await delay(20);
    }
  };
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    const ending = child;
    child = null;
    if (ending === null || ending.exitCode !== null || ending.signalCode !== null) return;
    const exited = once(ending, "exit");
    ending.kill(signal);
    ending.kill("SIGCONT");
    await exited;
  };
  const stop = async (): Promise<void> => {
    await end("SIGKILL");
    rmSync(home, { recursive: true, force: true });
  };

  await start();
  return {
    host: options.tls === true ? "localhost" : "127.0.0.1",
    port,
    certificate,
    get pid() {
      return child?.pid ?? 0;
    },
    kill: () => end("SIGKILL"),
    start,
    pause: () => void child?.kill("SIGSTOP"),
    resume: () => void child?.kill("SIGCONT"),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** Creates `key.pem` and `cert.pem` with the server's own certtool. */
async function selfSigned(inspircd: string, home: string): Promise<string> {
  const certtool = join(dirname(inspircd), "certtool");
  const run = promisify(execFile);
  const [key, certificate, template] = ["key.pem", "cert.pem", "template"].map((name) => join(home, name)) as [
    string,
    string,
    string,
  ];
  writeFileSync(
    template,
    'cn = "localhost"\ndns_name = "localhost"\nip_address = "127.0.0.1"\nexpiration_days = 2\ntls_www_server\nca\ncert_signing_key\nsigning_key\n',
  );
  await run(certtool, ["--generate-privkey", "--key-type", "ecdsa", "--outfile", key]);
  await run(certtool, [
    "--generate-self-signed",
    "--load-privkey",
    key,
    "--template",
    template,
    "--outfile",
    certificate,
  ]);
  return readFileSync(certificate, "utf8");
}

function configuration(options: InspIrcdOptions & { port: number }, home: string, moduleFolder: string): string {
  const { port, modern = true, history = false, tls = false } = options;
  const loaded = [...(modern ? modules : []), ...(tls ? ["ssl_gnutls"] : [])];
  const tag = (name: string, values: Record<string, string | number>): string =>
    `<${name} ${Object.entries(values)
      .map(([key, value]) => `${key}="${value}"`)
      .join(" ")}>`;
  return [
    '<config format="xml">',
    ...loaded.map((name) => tag("module", { name })),
    tag("server", { name: "irc.test.local", description: "test", network: "TestNet" }),
    tag("admin", { name: "admin", nick: "admin", email: "admin@test.local" }),
    ...(tls
      ? [
          tag("sslprofile", {
            name: "test",
            provider: "gnutls",
            certfile: join(home, "cert.pem"),
            keyfile: join(home, "key.pem"),
          }),
        ]
      : []),
    tag("bind", { address: "127.0.0.1", port, type: "clients", ...(tls ? { sslprofile: "test" } : {}) }),
    tag("connect", {
      name: "all",
      allow: "*",
      timeout: 60,
      pingfreq: 30,
      localmax: 1_000,
      globalmax: 1_000,
      hardsendq: "1M",
      softsendq: 8_192,
      recvq: "64K",
      commandrate: 10_000,
      threshold: 1_000,
      fakelag: "no",
      resolvehostnames: "no",
      useident: "no",
    }),
    tag("options", {
      prefixquit: "Quit: ",
      defaultmodes: modern && history ? "ntH 50:1h" : "nt",
      allowmismatch: "yes",
    }),
    tag("performance", { softlimit: 4_096, somaxconn: 128, nouserdns: "yes", quietbursts: "yes" }),
    tag("security", { announceinvites: "dynamic", maxtargets: 5 }),
    tag("limits", { maxnick: 30, maxchan: 64, maxmodes: 20, maxident: 10, maxhost: 64, maxline: 512 }),
    tag("path", {
      datadir: join(home, "data"),
      logdir: join(home, "log"),
      runtimedir: join(home, "run"),
      moduledir: moduleFolder,
      configdir: home,
    }),
    tag("pid", { file: join(home, "run/inspircd.pid") }),
    ...(modern && history
      ? [tag("chanhistory", { bots: "yes", enableumode: "no", notice: "no", prefixmsg: "no", maxlines: 50 })]
      : []),
    "",
  ].join("\n");
}
