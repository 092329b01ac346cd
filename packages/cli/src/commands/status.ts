// `parley status`: all replicas, the leader, the model and the queues.

import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";

import { errorMessage } from "@parley/contracts";

import { findTarget } from "../cluster/target.ts";
import type { Call, Run } from "../command-line/command.ts";
import { CliError } from "../errors.ts";
import { exitCodes } from "../exit-codes.ts";
import { note, painter, print, printJson } from "../io.ts";
import { fetchStatus } from "../status/fetch.ts";
import { statusText } from "../status/text.ts";

const watchEveryMs = 2_000;
/** Cursor home, clear. */
const clearScreen = "\u001B[H\u001B[2J\u001B[3J";

export const run: Run = async (call) => (call.values.has("watch") ? watch(call) : showOnce(call));

async function showOnce({ values, io }: Call): Promise<number> {
  const target = findTarget(values, io);
  if (target.home.abandoned) {
    note(io, `The supervisor of ${target.home.path} has exited; npm start starts the cluster again.`);
  }
  const view = await fetchStatus(target);
  if (values.has("json")) printJson(io, view);
  else print(io, statusText(view, painter(io.stdout, io.env)));
  return view.healthy ? exitCodes.ok : exitCodes.unhealthy;
}

/** Repeats until Ctrl-C: a screen on a terminal, otherwise one line of JSON each time. */
async function watch({ values, io }: Call): Promise<number> {
  const stopped = once(process, "SIGINT").then(() => "stopped" as const);
  const paint = painter(io.stdout, io.env);
  const json = values.has("json");
  for (;;) {
    let text: string;
    try {
      const view = await fetchStatus(findTarget(values, io));
      text = json ? JSON.stringify(view) : statusText(view, paint);
    } catch (error) {
      if (!(error instanceof CliError)) throw error;
      text = json
        ? JSON.stringify({ reachable: false, healthy: false, problems: [errorMessage(error)] })
        : errorMessage(error);
    }
    const screen = io.stdout.isTTY && !json;
    print(io, screen ? `${clearScreen}${text}\n\n${paint("dim", "Ctrl-C ends")}` : text);
    if ((await Promise.race([stopped, delay(watchEveryMs)])) === "stopped") return exitCodes.ok;
  }
}
