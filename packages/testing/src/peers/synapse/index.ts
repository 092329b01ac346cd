// A real Matrix homeserver: Synapse of Debian sid with SQLite, without federation, on a free loopback port.
import { spawn, type ChildProcess } from "node:child_process";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { errorMessage } from "@parley/contracts";
import { freePort } from "@parley/local";
import { MatrixPerson } from "./person.ts";
import { runNio, type NioPerson } from "./nio.ts";
import { synapsePython } from "./python.ts";

export interface Synapse extends AsyncDisposable {
  readonly url: string;
  /** The version of the Debian package, for the output of tests. */
  readonly version: string;
  /** Registers a user of this server and logs them in. */
  person(name: string): Promise<MatrixPerson>;
  /** Registers a user who is driven by matrix-nio. */
  nio(name: string): Promise<NioPerson>;
  /** Limits how fast a user may send; null: the limits of the server. */
  limit(userId: string, rate: { perSecond: number; burst: number } | null): Promise<void>;
  /** Kills the server: connections are cut and nothing is answered. */
  kill(): Promise<void>;
  /** Starts it again on the same port with the same data. */
  start(): Promise<void>;
}

const serverName = "parley.test";
const secret = "registration";
const startWithinMs = 60_000;

/** Why Synapse cannot run here, naming the peer; false when it can. The first call downloads it. */
export async function missingSynapse(): Promise<string | false> {
  try {
    const [command, args] = (await synapsePython()).command(["-c", "import synapse"]);
    const child = spawn(command, args, { stdio: ["ignore", "ignore", "pipe"] });
    const errors: Buffer[] = [];
    child.stderr.on("data", (chunk: Buffer) => errors.push(chunk));
    const [code] = (await once(child, "close")) as [number | null];
    return code === 0 ? false : `Synapse (Debian sid) does not run here: ${Buffer.concat(errors).toString().trim()}`;
  } catch (error) {
    return `Synapse (Debian sid) is not available: ${errorMessage(error)}`;
  }
}

export async function startSynapse(): Promise<Synapse> {
  const python = await synapsePython();
  const home = realpathSync(mkdtempSync(join(tmpdir(), "parley-synapse-")));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const config = join(home, "homeserver.yaml");
  writeFileSync(config, JSON.stringify(configuration(home, port)));
  writeFileSync(join(home, "log.yaml"), JSON.stringify(logging));
  let child: ChildProcess | null = null;

  const start = async (): Promise<void> => {
    const run = ["-m", "synapse.app.homeserver", "--config-path", config];
    const [command, args] = python.command(run, [home]);
    const started = spawn(command, args, { cwd: home, stdio: ["ignore", "pipe", "pipe"] });
    child = started;
    let output = "";
    for (const stream of [started.stdout, started.stderr])
      stream.on("data", (chunk: Buffer) => (output = `${output}${chunk.toString()}`.slice(-4_000)));
    const giveUpAtMs = performance.now() + startWithinMs;
    while (!(await isUp(url))) {
      if (started.exitCode !== null || performance.now() > giveUpAtMs) {
        started.kill("SIGKILL");
        throw new Error(`Synapse did not start:\n${output}`);
      }
      await delay(50);
    }
  };
  const kill = async (): Promise<void> => {
    const ending = child;
    child = null;
    if (ending === null || ending.exitCode !== null || ending.signalCode !== null) return;
    // The server inside bubblewrap ends later than bubblewrap, and closes its output.
    const closed = once(ending, "close");
    ending.kill("SIGKILL");
    await closed;
  };
  const register = async (name: string, admin = false) => {
    const { nonce } = (await request(url, "GET", "/_synapse/admin/v1/register")) as { nonce: string };
    const signed = [nonce, name, name, admin ? "admin" : "notadmin"].join("\0");
    const mac = createHmac("sha1", secret).update(signed).digest("hex");
    const body = { nonce, username: name, password: name, admin, mac };
    return (await request(url, "POST", "/_synapse/admin/v1/register", body)) as {
      user_id: string;
      access_token: string;
    };
  };

  try {
    await start();
  } catch (error) {
    rmSync(home, { recursive: true, force: true });
    throw error;
  }
  const admin = await register("admin", true);
  return {
    url,
    version: python.version,
    person: async (name) => {
      const { user_id: userId, access_token: token } = await register(name);
      return new MatrixPerson(url, userId, token);
    },
    nio: async (name) => {
      const { user_id: userId } = await register(name);
      return runNio(python, url, userId, name);
    },
    limit: async (userId, rate) => {
      const path = `/_synapse/admin/v1/users/${encodeURIComponent(userId)}/override_ratelimit`;
      const body = rate === null ? undefined : { messages_per_second: rate.perSecond, burst_count: rate.burst };
      await request(url, rate === null ? "DELETE" : "POST", path, body, admin.access_token);
    },
    kill,
    start,
    [Symbol.asyncDispose]: async () => {
      await kill();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

async function isUp(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/health`)).ok;
  } catch {
    return false;
  }
}

async function request(url: string, method: string, path: string, body?: object, token?: string): Promise<unknown> {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return response.json();
}

const unlimited = { per_second: 1_000, burst_count: 1_000 };

/** JSON is valid YAML. */
function configuration(home: string, port: number) {
  return {
    server_name: serverName,
    public_baseurl: `http://127.0.0.1:${port}/`,
    listeners: [{ port, bind_addresses: ["127.0.0.1"], type: "http", resources: [{ names: ["client", "media"] }] }],
    database: { name: "sqlite3", args: { database: join(home, "homeserver.db") } },
    log_config: join(home, "log.yaml"),
    media_store_path: join(home, "media"),
    signing_key_path: join(home, "signing.key"),
    generate_secrets: true,
    registration_shared_secret: secret,
    macaroon_secret_key: secret,
    form_secret: secret,
    report_stats: false,
    trusted_key_servers: [],
    federation_domain_whitelist: [],
    bcrypt_rounds: 4,
    max_upload_size: "4M",
    presence: { enabled: false },
    rc_message: unlimited,
    rc_registration: unlimited,
    rc_login: { address: unlimited, account: unlimited, failed_attempts: unlimited },
    rc_joins: { local: unlimited, remote: unlimited },
    rc_joins_per_room: unlimited,
    rc_room_creation: unlimited,
    rc_invites: { per_room: unlimited, per_user: unlimited, per_issuer: unlimited },
  };
}

const logging = {
  version: 1,
  handlers: { console: { class: "logging.StreamHandler" } },
  root: { level: "WARNING", handlers: ["console"] },
  disable_existing_loggers: false,
};
