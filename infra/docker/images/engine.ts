// A Docker engine for `npm run test:images`: the one that runs, or one of its own from Debian packages, which are unpacked and not installed.
import { execFile, execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";

export interface Engine {
  /** Runs the client; resolves with its standard output, or rejects with its standard error. */
  docker: (...args: string[]) => Promise<string>;
  /** Programs of the Debian packages; undefined: the engine was there. */
  packages: string | undefined;
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
  const own = client("docker", {});
  if (await works(own)) return { docker: own, packages: undefined, close: () => Promise.resolve() };
  if (process.platform !== "linux" || process.getuid?.() !== 0)
    throw new Error("no Docker engine answers, and only root on Linux can start one: start Docker and run this again");
  const unpacked = unpack(folder, say);
  say("starting a Docker engine");
  const environment = {
    PATH: `${unpacked}/usr/sbin:${unpacked}/usr/bin:${process.env["PATH"] ?? ""}`,
    LD_LIBRARY_PATH: `${unpacked}/usr/lib/x86_64-linux-gnu`,
  };
  const socket = `unix://${folder}/docker.sock`;
  // Containers use the network of the machine or none: a bridge would change the machine's packet filter.
  const places = ["data", "exec"].flatMap((name) => [`--${name}-root`, join(folder, name)]);
  const daemon = spawn(
    join(unpacked, "usr/sbin/dockerd"),
    [...places, "--host", socket, "--pidfile", join(folder, "docker.pid"), "--iptables=false", "--bridge=none"],
    { env: { ...process.env, ...environment }, stdio: ["ignore", "ignore", "pipe"] },
  );
  let log = "";
  daemon.stderr.on("data", (chunk: Buffer) => (log = (log + chunk.toString()).slice(-2_000)));
  const ended = new Promise<void>((resolve) => daemon.once("exit", () => resolve()));
  const docker = client(join(unpacked, "usr/bin/docker"), { ...environment, DOCKER_HOST: socket });
  const close = async (): Promise<void> => {
    daemon.kill("SIGTERM");
    await ended;
  };
  for (const deadline = Date.now() + startMs; !(await works(docker)); await delay(200)) {
    if (daemon.exitCode === null && Date.now() < deadline) continue;
    await close();
    throw new Error(`the Docker engine did not start:\n${log}`);
  }
  return { docker, packages: unpacked, close };
}

function client(program: string, environment: Record<string, string>): Engine["docker"] {
  const env = { ...process.env, ...environment, DOCKER_BUILDKIT: "1" };
  return async (...args) => {
    const { stdout } = await promisify(execFile)(program, args, { env, maxBuffer: 64 * 1024 * 1024 });
    return stdout.trim();
  };
}

async function works(docker: Engine["docker"]): Promise<boolean> {
  return docker("info").then(
    () => true,
    () => false,
  );
}

/** Downloads the packages with apt and unpacks them once. */
function unpack(folder: string, say: (line: string) => void): string {
  const root = join(folder, "packages");
  if (existsSync(join(root, "usr/sbin/dockerd"))) return root;
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
  rmSync(downloads, { recursive: true });
  return root;
}
