// `parley run`: runs one prompt or a program's conversation, and prints text, one result or a stream of messages.

import { onInterrupts, reconnectTimeout } from "../chat/once.ts";
import { openChat } from "../chat/open.ts";
import { Gateway } from "../cluster/gateway.ts";
import { findTarget, type Target } from "../cluster/target.ts";
import { CliError, exitCodes, type Io, note, readAll, UsageError } from "../io/io.ts";
import type { OptionValues } from "../io/options.ts";
import { readFiles } from "./attachments.ts";
import { runOptions, type RunOptions } from "./options.ts";
import { openRunSession, runPlace, type RunPlace } from "./place.ts";
import { Running } from "./running.ts";
import { type AppliedSetup, applySetup, isEmptySetup, restoreSetup } from "./setup.ts";

/** `parley run`. Returns the exit code. */
export async function runPrompt(values: OptionValues, positionals: readonly string[], io: Io): Promise<number> {
  const options = runOptions(values, positionals);
  if (options.prompt === null && !options.streamInput && io.stdin.isTTY) {
    throw new UsageError("Name a prompt: parley run 'text'", "parley run --help shows all forms.");
  }
  return runWith(options, findTarget(values, io), io);
}

/** Runs with options that are already known. Returns the exit code. */
export async function runWith(options: RunOptions, target: Target, io: Io): Promise<number> {
  const gateway = new Gateway(target);
  // With stream input, the program's commands also use the session of the run.
  const text = options.streamInput ? null : (options.prompt ?? (await readAll(io.stdin)));
  const files = await readFiles(options.attach, io);
  if (text !== null && text.trim() === "" && files.length === 0)
    throw new UsageError("The text is empty: there is nothing to send.");
  const place = await runPlace(gateway, options, text ?? "");
  const setup = await prepare(gateway, options, place);
  // On a terminal, the question shows how to answer it from another terminal; a program answers with a control response.
  const atTerminal = options.output === "text" && [io.stdin, io.stderr].every(({ isTTY }) => isTTY);
  const interactive = options.streamInput ? options.programApproves : atTerminal;
  const chatPlace = { ...place, ...setup.place, onlyOurs: true, interactive };
  const sessionId = chatPlace.session ?? null;
  const openSession = () => openRunSession(gateway, chatPlace, options.conversation !== undefined);
  const running = new Running({ gateway, target, io, openSession }, options, sessionId, place.conversation);
  const waiting = reconnectTimeout(io, chatPlace);
  try {
    const chat = await openChat(target, chatPlace, { ...running.listener(), ...waiting });
    const interrupts = onInterrupts(io, () => running.stop());
    try {
      if (!chat.canSpeak) throw new CliError("This session belongs to another channel: it is read-only here.");
      running.attach(chat);
      const ended = text === null ? running.converse() : running.say({ text, files, content: text, uuid: null });
      const left = await Promise.race([ended, waiting.lost, interrupts.twice]);
      const code = left === "interrupted" ? exitCodes.interrupted : running.finish();
      return interrupts.exitCode() ?? code;
    } finally {
      interrupts.stop();
      await running.close();
      chat.close();
    }
  } finally {
    const problem = setup.applied === null ? null : await restoreSetup(gateway, setup.applied);
    if (problem !== null) note(io, problem);
  }
}

interface Prepared {
  readonly applied: AppliedSetup | null;
  readonly place: Partial<RunPlace>;
}

/** Applies the settings of the run to its session, which is created if it is new. */
async function prepare(gateway: Gateway, options: RunOptions, place: RunPlace): Promise<Prepared> {
  const { conversation, maxModelCalls, maxUsd } = options;
  const setup = {
    ...options.setup,
    ...(maxModelCalls === null ? {} : { maxModelCalls }),
    ...(maxUsd === null ? {} : { maxCostMicros: Math.round(maxUsd * 1_000_000) }),
  };
  if (isEmptySetup(setup)) return { applied: null, place: {} };
  const { sessionId, thread } = await openRunSession(gateway, place, conversation !== undefined);
  const applied = await applySetup(gateway, setup, sessionId);
  return { applied, place: thread === undefined ? { session: sessionId } : { thread } };
}
