// `parley eval` grades scripted conversations, and `parley replay` runs a recorded turn again.

import { readFile, writeFile } from "node:fs/promises";
import { resolve } from "node:path";

import { errorMessage } from "@parley/contracts";
import { permissionModeNames, readPermissionMode } from "@parley/projections";

import { Gateway } from "../cluster/gateway.ts";
import { findTarget } from "../cluster/target.ts";
import { unifiedText } from "../docs/diff.ts";
import type { EvalCase } from "../eval/case-file.ts";
import { type ConversationDeps, type MessageSender, withConversation } from "../eval/conversation.ts";
import { grade, type TurnRecord } from "../eval/graders.ts";
import { recordedTurn } from "../eval/recorded.ts";
import { type CaseResult, junitReport, textReport } from "../eval/report.ts";
import { CliError, exitCodes, note, painter, print, printJson, UsageError } from "../io/io.ts";
import { jsonOption, targetOptions, text } from "../io/options.ts";
import type { Call, CommandSpec } from "./command.ts";

async function evaluate({ values, positionals, io }: Call): Promise<number> {
  if (positionals.length === 0) throw new UsageError("Name the case files: parley eval cases/*.yaml");
  const target = findTarget(values, io);
  const deps = { gateway: new Gateway(target), target, io };
  const cases: { file: string; evalCase: EvalCase }[] = [];
  // Imported here because the YAML parser would slow the start of all other commands.
  const { readCases } = await import("../eval/case-file.ts");
  for (const file of positionals) {
    const content = await readFile(resolve(io.cwd, file), "utf8").catch((error: unknown) => {
      throw new CliError(`Cannot read ${file}: ${errorMessage(error)}`);
    });
    for (const evalCase of readCases(file, content)) cases.push({ file, evalCase });
  }
  const results: CaseResult[] = [];
  for (const { file, evalCase } of cases) {
    const model = values.text("model") ?? evalCase.model;
    results.push({ file, ...(await runCase(deps, { ...evalCase, model })) });
  }
  const junit = values.text("junit");
  if (junit !== undefined) await writeFile(resolve(io.cwd, junit), `${junitReport(results)}\n`);
  if (values.has("json")) printJson(io, { cases: results });
  else print(io, textReport(results, painter(io.stdout, io.env)));
  return results.every(({ passed }) => passed) ? exitCodes.ok : exitCodes.error;
}

/** Runs all turns of a case. Never rejects: an error is stored in the result, so that the other cases still run. */
async function runCase(deps: ConversationDeps, evalCase: EvalCase): Promise<Omit<CaseResult, "file">> {
  const { name, turns: steps, model, instructions, permission_mode: mode } = evalCase;
  const permissionMode = mode === undefined ? undefined : readPermissionMode(mode);
  const turns: CaseResult["turns"][number][] = [];
  let error: string | null = null;
  const addGraded = (record: TurnRecord, expected: EvalCase["turns"][number]["expect"]): void => {
    turns.push({ ...record, failures: grade(expected, record) });
  };
  try {
    const run = async (send: MessageSender["send"] | null): Promise<void> => {
      for (const step of steps) {
        if ("recorded" in step) addGraded((await recordedTurn(deps.gateway, step.recorded)).record, step.expect);
        else if (send !== null) addGraded(await send(step.say), step.expect);
      }
    };
    const sendsMessages = steps.some((step) => "say" in step);
    if (!sendsMessages) await run(null);
    else await withConversation(deps, { setup: { model, permissionMode }, instructions }, ({ send }) => run(send));
  } catch (failure) {
    error = errorMessage(failure);
  }
  const turnCosts = turns.map(({ costUsd }) => costUsd);
  return {
    name,
    passed: error === null && turns.every(({ failures }) => failures.length === 0),
    seconds: turns.reduce((seconds, turn) => seconds + turn.seconds, 0),
    costUsd: turnCosts.includes(null) ? null : turnCosts.reduce<number>((sum, cost) => sum + (cost ?? 0), 0),
    turns,
    error,
  };
}

async function replay({ values, positionals: [turnId], io }: Call): Promise<number> {
  if (turnId === undefined) throw new UsageError("Name a turn by its id: parley replay <turn> --model <name>");
  const target = findTarget(values, io);
  const gateway = new Gateway(target);
  const { record: before, sessionId, prompt, seq } = await recordedTurn(gateway, turnId);
  const mode = values.text("permission-mode") ?? "plan";
  const permissionMode = readPermissionMode(mode);
  if (permissionMode === undefined) throw new UsageError(`--permission-mode: "${mode}" is not a permission mode.`);
  const copyFrom = seq > 1 ? { sessionId, atSeq: seq - 1 } : undefined;
  const setup = { model: values.text("model"), permissionMode };
  const scenario = { setup, instructions: values.text("instructions"), from: copyFrom };
  const after = await withConversation({ gateway, target, io }, scenario, ({ send }) =>
    send(values.text("prompt") ?? prompt.text, prompt.attachments),
  );
  if (values.has("json")) printJson(io, { before, after, same: before.text === after.text });
  else print(io, differenceText(before, after));
  if (!after.answered) note(io, "The replayed turn ended without an answer.");
  return after.answered ? exitCodes.ok : exitCodes.error;
}

/** A unified diff of the two answers, then one line per measurement with its value before and after. Pure. */
export function differenceText(before: TurnRecord, after: TurnRecord): string {
  const row = (name: string, format: (turn: TurnRecord) => string): string =>
    `${name.padEnd(8)} ${format(before)} → ${format(after)}`;
  const answerDiff = unifiedText("answer", before.text, after.text);
  return [
    answerDiff === "" ? "The answer is the same." : answerDiff.trimEnd(),
    row("tools", ({ tools }) => (tools.length === 0 ? "none" : tools.join(", "))),
    row("calls", ({ modelCalls }) => String(modelCalls)),
    row("tokens", ({ inputTokens, outputTokens }) => `${inputTokens} in, ${outputTokens} out`),
    row("cost", ({ costUsd }) => (costUsd === null ? "unknown" : `$${costUsd}`)),
    row("seconds", ({ seconds }) => seconds.toFixed(1)),
  ].join("\n");
}

export const evalCommands: readonly CommandSpec[] = [
  {
    name: "eval",
    summary: "run case files and grade the answers",
    operands: ["<file>…"],
    details: `Each case runs in a new session on the cluster's model, which can be the rehearsal model, or on --model. docs/evals.md describes
the case files. Exit codes: 0 all cases passed, 1 a case failed, 2 invalid usage.`,
    options: {
      ...targetOptions,
      ...jsonOption,
      model: text("<name>", "run every case on this model"),
      junit: text("<file>", "also write the results as JUnit XML"),
    },
    examples: ["parley eval cases/*.yaml", "parley eval cases/*.yaml --junit results.xml --json"],
    run: evaluate,
  },
  {
    name: "replay",
    summary: "run a recorded turn again and show the difference",
    operands: ["<turn>"],
    details: `The turn runs again in a copy of its session up to that turn, with its message and files. Without --permission-mode it may only read
(mode plan), because its tools run for real. Exit codes: 0 it was answered, 1 it was not, 2 invalid usage.`,
    options: {
      ...targetOptions,
      ...jsonOption,
      model: text("<name>", "the model to use"),
      prompt: text("<text>", "another message instead of the recorded one"),
      instructions: text("<text>", "instructions for the agent, before the message"),
      "permission-mode": text("<mode>", "what may run; default plan", permissionModeNames),
    },
    examples: [
      "parley replay 01f2… --model openai:gpt-5",
      "parley replay 01f2… --instructions 'Answer in one sentence.'",
    ],
    run: replay,
  },
];
