// The commands that start a cluster on this machine, show its state and logs, and check it.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { constants } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { errorMessage } from "@parley/contracts";
import { requestEnd } from "@parley/local";

import { fetchStatus } from "../cluster/status.ts";
import { findTarget } from "../cluster/target.ts";
import { doctor } from "../doctor/doctor.ts";
import { CliError, exitCodes, note, painter, print, printJson, terminalWidth } from "../io/io.ts";
import { flag, homeOption, jsonOption, targetOptions, text } from "../io/options.ts";
import { logOptions, printLogs } from "../logs/logs.ts";
import { statusText } from "../tables/status.ts";
import type { Call, CommandSpec } from "./command.ts";

const startScript = fileURLToPath(new URL("../../../../infra/local/src/main.ts", import.meta.url));

export const upCommand: CommandSpec = {
  name: "up",
  summary: "start Parley on this machine (the same as npm start)",
  options: {},
  passThrough: true,
  examples: [
    "parley up --detach",
    "parley up --replicas agent-core=2,channel-gateway=2",
    "parley up --preset goat --set limits.max_usd=2",
  ],
  /** Runs `npm start` on this terminal. It receives each Ctrl-C twice, from the terminal and forwarded from here, and treats both as one. */
  run: async ({ positionals, io }) => {
    const child = spawn(process.execPath, ["--conditions=@parley/source", startScript, ...positionals], {
      cwd: io.cwd,
      env: { ...io.env },
      stdio: "inherit",
    });
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => child.kill(signal));
    const [code, signal] = (await once(child, "exit")) as [number | null, NodeJS.Signals | null];
    return code ?? 128 + constants.signals[signal ?? "SIGKILL"];
  },
};

/** Longer than a drain of all services; after it, a second SIGTERM ends them immediately. */
const stopTimeoutMs = 120_000;

export const downCommand: CommandSpec = {
  name: "down",
  summary: "stop Parley on this machine, wherever it was started",
  details: "Running turns get time to finish. Messages that wait are stored, and the next start continues them.",
  options: homeOption,
  examples: ["parley down"],
  run: async ({ values, io }) => {
    const { home } = findTarget(values, io);
    if (home.state === null) {
      print(io, `Parley does not run on ${home.path}.`);
      return exitCodes.ok;
    }
    const { pid } = home.state.supervisor;
    note(io, `stopping Parley (pid ${pid})`);
    if (!(await requestEnd(home.state.supervisor, stopTimeoutMs))) {
      const limit = `${stopTimeoutMs / 60_000} minutes`;
      throw new CliError(`Parley (pid ${pid}) did not stop within ${limit}.`, {
        fix: `End it immediately: kill ${pid}`,
      });
    }
    print(io, "Stopped.");
    return exitCodes.ok;
  },
};

export const statusCommand: CommandSpec = {
  name: "status",
  summary: "show all replicas, the leader, the model and the queues",
  options: { ...targetOptions, ...jsonOption, watch: flag("refresh every two seconds", "w") },
  examples: ["parley status", "parley status --json | jq -r '.replicas[] | select(.role == \"leader\").replica'"],
  run: async (call) => (call.values.has("watch") ? watch(call) : showStatus(call)),
};

const watchEveryMs = 2_000;
/** Cursor home, clear. */
const clearScreen = "\u001B[H\u001B[2J\u001B[3J";

async function showStatus({ values, io }: Call): Promise<number> {
  const target = findTarget(values, io);
  if (target.home.abandoned) {
    note(io, `The supervisor of ${target.home.path} has exited; npm start starts the cluster again.`);
  }
  const view = await fetchStatus(target);
  if (values.has("json")) printJson(io, view);
  else print(io, statusText(view, painter(io.stdout, io.env), terminalWidth(io.stdout)));
  return view.healthy ? exitCodes.ok : exitCodes.unhealthy;
}

/** Repeats until Ctrl-C. With --json one JSON line per refresh; otherwise text, after clearing the screen on a terminal. */
async function watch({ values, io }: Call): Promise<number> {
  const stopped = once(process, "SIGINT").then(() => "stopped" as const);
  const paint = painter(io.stdout, io.env);
  const json = values.has("json");
  for (;;) {
    let shown: string;
    try {
      const view = await fetchStatus(findTarget(values, io));
      shown = json ? JSON.stringify(view) : statusText(view, paint, terminalWidth(io.stdout));
    } catch (error) {
      if (!(error instanceof CliError)) throw error;
      const reason = errorMessage(error);
      shown = json ? JSON.stringify({ reachable: false, healthy: false, problems: [reason] }) : reason;
    }
    const screen = io.stdout.isTTY && !json;
    print(io, screen ? `${clearScreen}${shown}\n\n${paint("dim", "Ctrl-C ends")}` : shown);
    if ((await Promise.race([stopped, delay(watchEveryMs)])) === "stopped") return exitCodes.ok;
  }
}

export const doctorCommand: CommandSpec = {
  name: "doctor",
  summary: "check every part and suggest fixes",
  details: "The checks are independent of each other. The exit code is 3 if there are errors; warnings leave it at 0.",
  options: { ...targetOptions, ...jsonOption },
  examples: ["parley doctor", "parley doctor --json | jq '.checks[] | select(.severity != \"ok\")'"],
  run: ({ values, io }) => doctor(values, io),
};

export const logsCommand: CommandSpec = {
  name: "logs",
  summary: "print the logs of all processes on this machine, merged by time",
  options: {
    ...logOptions,
    service: text("<name>", "a service, a replica (store-1) or a server (redis)"),
  },
  examples: ["parley logs -f", "parley logs --service agent-core --level warn --since 10m"],
  run: ({ values, io }) => printLogs(values, io),
};
