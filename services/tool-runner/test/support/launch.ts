// Starts the tool-runner as a separate process.
import { fork, type ChildProcess } from "node:child_process";
import { servicePrograms } from "@parley/testing";
import type { RunnerFixture } from "./runner-fixture.ts";

/** Starts a tool-runner and waits until it is ready; the fixture's cleanup kills it. */
export async function launch(
  fixture: RunnerFixture,
  replica: string,
  env: Record<string, string> = {},
): Promise<ChildProcess> {
  const child = fork(servicePrograms()["tool-runner"], {
    execArgv: ["--conditions=@parley/source"],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
    env: {
      PATH: process.env["PATH"] ?? "",
      NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"] ?? "",
      PARLEY_NATS_URL: fixture.stack.nats.urlFor("tool-runner"),
      PARLEY_REPLICA: replica,
      PARLEY_LOG_LEVEL: "silent",
      PARLEY_WORKSPACE: (await fixture.config(replica)).workspace,
      PARLEY_EXEC_ISOLATION: "none",
      ...env,
    },
  });
  fixture.cleanup.add(() => kill(child));
  await new Promise<void>((resolve, reject) => {
    child.once("message", () => resolve());
    child.once("exit", (code) => reject(new Error(`the tool-runner ended with ${code}`)));
  });
  return child;
}

export async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await exited;
}

/** Resolves with the signal that ends the process. */
export function killed(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve) => child.once("exit", (_, signal) => resolve(signal)));
}
