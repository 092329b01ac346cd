// A Docker engine for `npm run test:images`: the one that runs, or one of its own from Debian packages, which are unpacked and not installed.
import { execFile, execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";

/** A client of an engine. */
export interface Docker {
  /** Runs the client; resolves with its standard output, or rejects with its standard error. */
  docker: (...args: string[]) => Promise<string>;
}

export interface Engine extends Docker {
  /** Programs of the Debian packages; undefined: the engine was there. */
  packages: string | undefined;
  /** The variables with which a client finds the engine. */
  environment: Readonly<Record<string, string>>;
  /**
   * Restarts an engine of our own in a network namespace of its own, where containers get networks and no way out, and nothing of the machine
   * changes. Resolves with the words before a command that is to run in that namespace.
   */
  isolate(): Promise<string[]>;
  close(): Promise<void>;
}

const packages = [
  "docker.io",
  "containerd",
  "runc",
  "iptables",
  "libip4tc2",
  "libip6tc2",
  "libmnl0",
  "libnetfilter-conntrack3",
  "libnfnetlink0",
  "libnftnl11",
  "libxtables12",
  "mmdebstrap",
];
const startMs = 30_000;

/** Throws with what is missing when there is no engine and none can be started here. */
export async function openEngine(folder: string, say: (line: string) => void): Promise<Engine> {
  const own = connectEngine({}).docker;
  const close = () => Promise.resolve();
  if (await works(own))
    return { docker: own, packages: undefined, environment: {}, isolate: () => Promise.resolve([]), close };
  if (process.platform !== "linux" || process.getuid?.() !== 0)
    throw new Error("no Docker engine answers, and only root on Linux can start one: start Docker and run this again");
  const unpacked = unpack(folder, say);
  const environment = {
    PATH: `${unpacked}/usr/sbin:${unpacked}/usr/bin:${process.env["PATH"] ?? ""}`,
    LD_LIBRARY_PATH: `${unpacked}/usr/lib/x86_64-linux-gnu`,
    XTABLES_LIBDIR: `${unpacked}/usr/lib/x86_64-linux-gnu/xtables`,
    DOCKER_HOST: `unix://${folder}/docker.sock`,
    DOCKER_CONFIG: join(folder, "client"),
  };
  say("starting a Docker engine");
  // Containers use the network of the machine or none: a bridge would change the machine's packet filter.
  let daemon = await startDaemon(folder, environment, [], ["--iptables=false", "--bridge=none"]);
  return {
    docker: connectEngine(environment).docker,
    packages: unpacked,
    environment,
    async isolate() {
      await daemon.stop();
      // An address of the documentation's range: what a container reaches there, it reaches by way of its gateway, as the internet.
      const prepare = 'ip link set lo up && ip address add 203.0.113.1/32 dev lo && exec "$@"';
      const inside = ["unshare", "--net", "sh", "-c", prepare, "sh"];
      daemon = await startDaemon(folder, environment, inside, [
        "--bip=10.231.0.1/24",
        "--default-address-pool=base=10.232.0.0/16,size=24",
      ]);
      return ["nsenter", `--net=/proc/${daemon.pid}/ns/net`];
    },
    close: () => daemon.stop(),
  };
}

interface Daemon {
  pid: number;
  stop(): Promise<void>;
}

async function startDaemon(
  folder: string,
  environment: Record<string, string> & { PATH: string; DOCKER_HOST: string },
  before: readonly string[],
  options: readonly string[],
): Promise<Daemon> {
  const places = ["data", "exec"].flatMap((name) => [`--${name}-root`, join(folder, name)]);
  const own = ["--host", environment.DOCKER_HOST, "--pidfile", join(folder, "docker.pid")];
  const [program = "dockerd", ...args] = [...before, "dockerd", ...places, ...own, ...options];
  const daemon = spawn(program, args, { env: { ...process.env, ...environment }, stdio: ["ignore", "ignore", "pipe"] });
  let log = "";
  daemon.stderr.on("data", (chunk: Buffer) => (log = (log + chunk.toString()).slice(-2_000)));
  const ended = new Promise<void>((resolve) => daemon.once("exit", () => resolve()));
  const stop = async (): Promise<void> => {
    daemon.kill("SIGTERM");
    await ended;
  };
  const { docker } = connectEngine(environment);
  for (const deadline = Date.now() + startMs; !(await works(docker)); await delay(200)) {
    if (daemon.exitCode === null && Date.now() < deadline) continue;
    await stop();
    throw new Error(`the Docker engine did not start:\n${log}`);
  }
  return { pid: daemon.pid ?? 0, stop };
}

/** The client of an engine that these variables name. */
export function connectEngine(environment: Readonly<Record<string, string>>): Docker {
  const env = { ...process.env, ...environment, DOCKER_BUILDKIT: "1" };
  return {
    docker: async (...args) => {
      const { stdout } = await promisify(execFile)("docker", args, { env, maxBuffer: 64 * 1024 * 1024 });
      return stdout.trim();
    },
  };
}

async function works(docker: Docker["docker"]): Promise<boolean> {
  return docker("info").then(
    () => true,
    () => false,
  );
}

/** Downloads the packages with apt and unpacks them once. */
function unpack(folder: string, say: (line: string) => void): string {
  const root = join(folder, "packages");
  if (existsSync(join(root, "usr/sbin/ip6tables"))) return root;
  say("downloading the Debian packages of the Docker engine");
  const downloads = join(folder, "downloads");
  mkdirSync(downloads, { recursive: true });
  try {
    execFileSync("apt-get", ["download", ...packages], { cwd: downloads, stdio: ["ignore", "ignore", "pipe"] });
  } catch (error) {
    throw new Error("no Docker engine answers, and apt cannot download one: start Docker and run this again", {
      cause: error,
    });
  }
  for (const file of readdirSync(downloads)) execFileSync("dpkg", ["-x", join(downloads, file), root]);
  for (const name of ["iptables", "ip6tables"]) symlinkSync("xtables-nft-multi", join(root, "usr/sbin", name));
  rmSync(downloads, { recursive: true });
  return root;
}
