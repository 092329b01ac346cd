// `parley onboard`: the flow. On a terminal it asks; with `--yes` it takes all answers from flags.

import { join } from "node:path";

import { ConfigError } from "@parley/chassis/settings";
import { openHome, withSecrets } from "@parley/local";

import { Gateway } from "../cluster/gateway.ts";
import { findSettings, readSettings } from "../cluster/settings.ts";
import { findTarget, homePath, viewHome } from "../cluster/target.ts";
import { canAsk, CliError, exitCodes, note, print, UsageError, type Io } from "../io/io.ts";
import type { OptionValues } from "../io/options.ts";
import { askChannel } from "./ask-channel.ts";
import { askModel } from "./ask-model.ts";
import { connectOwners } from "./connect.ts";
import { givenAnswers } from "./given.ts";
import { testModel } from "./model-test.ts";
import { modelTitle } from "./models.ts";
import { type Answers, carryOut, planOf } from "./plan.ts";
import { presetChoices } from "./presets.ts";
import { type Prompts, terminalPrompts } from "./prompts.ts";

interface Place {
  readonly home: string;
  readonly settingsFile: string;
}

/** Returns the exit code. */
export async function onboard(values: OptionValues, io: Io): Promise<number> {
  const home = homePath(values, io);
  const place = { home, settingsFile: findSettings(undefined, values, io) ?? join(home, "parley.toml") };
  if (values.has("yes")) return withoutQuestions(values, io, place);
  if (!canAsk(io)) {
    throw new UsageError(
      "parley onboard asks questions and needs a terminal.",
      "In a script: parley onboard --yes --model-provider anthropic --api-key-file <file>",
    );
  }
  const prompts = terminalPrompts(io);
  if (values.has("connect")) return connect(prompts, values, io);
  return askAll(prompts, values, io, place);
}

async function withoutQuestions(values: OptionValues, io: Io, place: Place): Promise<number> {
  const answers = await givenAnswers(values, io);
  const test = await testModel(answers.model);
  if (test.outcome !== "works") throw new CliError(test.text, { fix: "Nothing was changed." });
  write(answers, place);
  print(io, `${modelTitle(answers.model)} answers; the settings are in ${place.settingsFile}.`);
  note(io, nextStep(place.home));
  return exitCodes.ok;
}

async function askAll(prompts: Prompts, values: OptionValues, io: Io, place: Place): Promise<number> {
  prompts.intro("Parley: set-up in about two minutes. Ctrl-C ends it without changes.");
  if (values.has("offer") && !(await wantsToSetUp(prompts))) return exitCodes.ok;
  const channelOnly = values.has("channel-only");
  const model = channelOnly ? null : await askModel(prompts, io.env);
  const preset = channelOnly ? undefined : await askPreset(prompts);
  const channel = await askChannel(prompts);
  write({ model, preset, channel }, place);
  prompts.outro(
    values.has("offer")
      ? "Done. Parley starts now."
      : `Done: ${place.settingsFile}. ${nextStep(place.home)}${channel === null ? "" : " Then: npx parley onboard --connect"}`,
  );
  return exitCodes.ok;
}

async function wantsToSetUp(prompts: Prompts): Promise<boolean> {
  const wanted = await prompts.choose("No model is configured yet. Set one up?", [
    { value: true, label: "Yes, now" },
    { value: false, label: "Not now", hint: "the rehearsal model answers; npx parley onboard does it later" },
  ]);
  if (!wanted) prompts.outro("The rehearsal model answers until then.");
  return wanted;
}

async function askPreset(prompts: Prompts): Promise<Answers["preset"]> {
  return prompts.choose(
    "How should it work?",
    presetChoices.map(({ preset, title, hint }) => ({ value: preset, label: title, hint })),
  );
}

function write(answers: Answers, { home, settingsFile }: Place): void {
  openHome(home);
  carryOut(planOf(answers), home, settingsFile);
}

function nextStep(home: string): string {
  return viewHome(home).state === null
    ? "Start Parley with: npm start"
    : "Restart Parley, so that it reads them: Ctrl-C in its terminal, then npm start.";
}

async function connect(prompts: Prompts, values: OptionValues, io: Io): Promise<number> {
  const target = findTarget(values, io);
  const env = withSecrets(target.home.path, io.env);
  const running = target.home.state?.settings ?? {};
  try {
    const { settings } = readSettings(findSettings(undefined, values, io), values, { ...io, env }, running);
    await connectOwners(prompts, new Gateway(target), settings);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new CliError(error.message);
  }
  return exitCodes.ok;
}
