// `npm start`: runs the whole cluster on this machine and opens the chat.

import { once as onceEvent } from "node:events";
import { readFileSync } from "node:fs";

import { flagsAsVariable } from "@parley/chassis/settings";

import type { Environment } from "./environment.ts";
import { readRunningState } from "./home.ts";
import { channelLines, introduction, rehearsalWarning } from "./introduction.ts";
import { ask, chat, type TerminalChat } from "./main/ask.ts";
import { watchChannels } from "./main/channel-notices.ts";
import { isDetached, sendToTerminal, sentToTerminal, startDetached } from "./main/detached.ts";
import { connectChannel, needsOnboarding, onboard } from "./main/onboarding.ts";
import { helpText, readOptions, type StartOptions } from "./main/options.ts";
import { channelStates, consoleLink, report, print, serviceLineWriter } from "./main/report.ts";
import { countStopRequests, StopRequested, type StopRequests } from "./main/stop-requests.ts";
import { type Cluster, startLocalCluster } from "./local-cluster.ts";

/** Progress lines that `--once` shows too: they explain a long wait. */
const slowStep = /^downloading /;

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2), process.env, process.cwd());
  if (options.help) {
    console.log(helpText);
    return 0;
  }
  const requests = countStopRequests();
  if (options.detach) return startInBackground(options, requests);
  return options.once === null ? runUntilStopped(options, requests) : answerOnce(options, options.once, requests);
}

/** Starts a separate process that runs the cluster, and returns when the cluster is ready. The set-up runs in this process. */
async function startInBackground(options: StartOptions, requests: StopRequests): Promise<number> {
  const wasOffered = await offerSetUp(options, requests);
  await startDetached(options.home, process.argv.slice(2), requests);
  if (wasOffered) await connectChannel(options.home, requests.first);
  print("Parley runs in the background. Talk to it: npx parley chat");
  print("Stop it: npx parley down");
  return 0;
}

/** Offers the set-up on a terminal while no model is configured; false if it was not offered. */
async function offerSetUp(options: StartOptions, requests: StopRequests): Promise<boolean> {
  if (!isOnTerminal() || !needsOnboarding(options.home, settingsOf(options))) return false;
  requests.ignoreInterrupts = true; // the questions handle Ctrl-C
  await onboard(options.home, requests.first);
  requests.ignoreInterrupts = false;
  return true;
}

function isOnTerminal(): boolean {
  return process.stdin.isTTY && process.stdout.isTTY;
}

/** Answers one message, with the cluster that uses this data folder or, if none runs, with a temporary one. */
async function answerOnce(options: StartOptions, text: string, requests: StopRequests): Promise<number> {
  const running = readRunningState(options.home);
  if (running !== null) {
    const token = readFileSync(running.tokenFile, "utf8").trim();
    process.stdout.write(`${await ask(running.httpUrl, token, text, requests.first)}\n`);
    return 0;
  }
  const cluster = await start(options, requests, {
    httpPort: options.portChosen ? options.httpPort : 0,
    print: (line) => slowStep.test(line) && print(line),
    warn: print,
  });
  try {
    process.stdout.write(`${await ask(cluster.httpUrl, cluster.token, text, requests.first)}\n`);
    return 0;
  } finally {
    await stopCluster(cluster, requests);
  }
}

/** Starts the cluster, opens the chat on a terminal, and runs until a stop request. */
async function runUntilStopped(options: StartOptions, requests: StopRequests): Promise<number> {
  const withChat = options.chat && isOnTerminal();
  const wasOffered = withChat && (await offerSetUp(options, requests));
  const begun = performance.now();
  let opened: TerminalChat | null = null;
  // Only the chat may write to the terminal while it is open.
  const warn = (line: string) => (opened === null ? print(line) : opened.warn(line));
  const cluster = await start(options, requests, {
    httpPort: options.httpPort,
    print: (line) => opened === null && print(line),
    warn,
    // In the background, the services' own log files are enough.
    ...(withChat || isDetached ? {} : { onServiceLine: serviceLineWriter(process.stderr.isTTY) }),
  });
  print(`ready in ${((performance.now() - begun) / 1000).toFixed(1)} s`);
  printIntroduction(cluster, await consoleLink(cluster));
  const states = await channelStates(cluster);
  for (const line of [...channelLines(states), ...rehearsalWarning(cluster.model, states)]) print(line);
  sendToTerminal({ ready: true });
  void watchChannels(cluster, warn, requests.first);
  try {
    let keepsRunning = true;
    if (withChat) {
      requests.ignoreInterrupts = true; // the questions and the chat handle Ctrl-C while they are open
      if (wasOffered) await connectChannel(cluster.home, requests.first);
      opened = chat(cluster.home, requests.first);
      keepsRunning = (await opened.ended).keepsCluster;
      opened = null;
      requests.ignoreInterrupts = false;
      if (keepsRunning) print("The cluster runs until Ctrl-C. Open the chat in another terminal: npx parley chat");
    }
    if (keepsRunning && !requests.first.aborted) await onceEvent(requests.first, "abort");
  } finally {
    await stopCluster(cluster, requests);
  }
  return 0;
}

/** The environment with the flags that set settings. */
function settingsOf({ settings }: StartOptions): Environment {
  return { ...process.env, ...flagsAsVariable(settings) };
}

type OutputOptions = Pick<Parameters<typeof startLocalCluster>[0], "print" | "warn" | "onServiceLine" | "httpPort">;

async function start(options: StartOptions, requests: StopRequests, output: OutputOptions): Promise<Cluster> {
  const { home, replicas } = options;
  const environment = settingsOf(options);
  const exitImmediately = (): never => process.exit(1); // the first request has already stopped what had been started
  requests.second.addEventListener("abort", exitImmediately, { once: true });
  const cluster = await startLocalCluster({ home, replicas, environment, signal: requests.first, ...output });
  requests.second.removeEventListener("abort", exitImmediately);
  return cluster;
}

function printIntroduction(cluster: Cluster, link: string | null): void {
  for (const line of introduction(cluster, link)) print(line);
}

/** Drains and stops the cluster; a second stop request kills it. */
async function stopCluster(cluster: Cluster, requests: StopRequests): Promise<void> {
  requests.second.addEventListener("abort", () => void cluster.stopNow(), { once: true });
  await cluster.stop();
}

// A closed terminal, or a full disk under redirected output, must not end the cluster.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof StopRequested)) report(error);
  else if (!isDetached) print("Stopped.");
  await sentToTerminal();
  // Do not wait for downloads that the failed start has begun.
  process.exit(1);
}
