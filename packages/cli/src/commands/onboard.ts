// The command `parley onboard`.

import { exampleAddress, presetNames } from "@parley/contracts";

import { flag, targetOptions, text } from "../io/options.ts";
import { onboard } from "../onboard/onboard.ts";
import { modelProviders } from "../onboard/models.ts";
import type { CommandSpec } from "./command.ts";

const exampleAccount = exampleAddress.split(":").slice(0, 2).join(":");

export const onboardCommand: CommandSpec = {
  name: "onboard",
  summary: "set up the model, a preset and a first channel",
  details: `Asks on a terminal; npm start offers it while no model is configured. The model is tested with one call. Secrets go to
secrets.env in the data folder, which only you can read; settings go to parley.toml. With --yes, flags give all answers.
docs/getting-started.md describes each step.`,
  options: {
    ...targetOptions,
    yes: flag("ask nothing: take the answers from the flags"),
    "model-provider": text("<name>", "who serves the model", modelProviders),
    "api-key-file": text("<file>", "a file with the key of the model"),
    "model-url": text("<url>", "with local: the address of the server, with /v1"),
    model: text("<name>", "with openai and local: the model; default: the first one of the server"),
    preset: text("<name>", "how the agent works", ["default", ...presetNames]),
    channel: text("<channel>", `a channel to add, or an account of it such as ${exampleAccount}`),
    "channel-set": text("<setting>=<value>", "a setting of its account; repeatable"),
    "channel-secret-file": text("<setting>=<file>", "a file with a secret of the account; repeatable"),
    "channel-only": flag("ask only for a channel"),
    connect: flag("ask for the owner of each channel that has none, while Parley runs"),
    offer: flag("begin with the question whether to set up anything"),
  },
  examples: [
    "parley onboard",
    "parley onboard --yes --model-provider anthropic --api-key-file key.txt --preset goat",
    "parley onboard --yes --model-provider local --model-url http://127.0.0.1:11434/v1",
    "parley onboard --connect",
  ],
  run: ({ values, io }) => onboard(values, io),
};
