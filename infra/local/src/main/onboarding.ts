// The set-up that `npm start` offers on a terminal while no model is configured: `parley onboard` as a child process.

import { explainSettings } from "@parley/chassis/settings";

import { findConfig } from "../config-file.ts";
import { isModelConfigured } from "../configured-model.ts";
import type { Environment } from "../environment.ts";
import { withSecrets } from "../secrets.ts";
import { runOnTerminal } from "./ask.ts";
import { StopRequested } from "./stop-requests.ts";

/** False also for settings or secrets that cannot be read: the start reports them. */
export function needsOnboarding(homePath: string, given: Environment): boolean {
  try {
    const environment = withSecrets(homePath, given);
    const path = findConfig(homePath, environment) ?? undefined;
    return !isModelConfigured(environment, explainSettings(path, environment).settings);
  } catch {
    return false;
  }
}

/** Asks for the model, the preset and a first channel. Throws StopRequested if the person ended the questions, or they failed. */
export async function onboard(home: string, signal: AbortSignal): Promise<void> {
  const code = await runOnTerminal(["onboard", "--offer", "--home", home], signal);
  if (code !== 0) throw new StopRequested();
}

/** Makes the person the owner of the channel that they have just configured; returns immediately without one. */
export async function connectChannel(home: string, signal: AbortSignal): Promise<void> {
  await runOnTerminal(["onboard", "--connect", "--home", home], signal);
}
