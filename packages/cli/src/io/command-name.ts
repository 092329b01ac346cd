// How a person runs this command line here: as `parley` where it is installed, otherwise as `npx parley` in the folder of Parley.

import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

import type { Io } from "./io.ts";

/** Folders that npm and npx put on the PATH of what they run: a shell does not have them. */
const ofNpm = /[\\/]node_modules[\\/](?:\.bin|.*node-gyp-bin)[\\/]?$/;

/** A command of ours in a text, which names it without `npx`. */
const ownCommand = /(?<![\w/.@-]|npx )parley(?= (?:[a-z]|--|<|\[))/g;

/** The words that run a command of ours from a shell here. */
export function commandName({ PATH = "" }: Io["env"]): "parley" | "npx parley" {
  const folders = PATH.split(delimiter).filter((folder) => folder !== "" && !ofNpm.test(folder));
  return folders.some((folder) => existsSync(join(folder, "parley"))) ? "parley" : "npx parley";
}

/** A text of this program with its commands as they are typed here. Not for data: it would change it. */
export function asTyped(text: string, env: Io["env"] = process.env): string {
  return text.replaceAll(ownCommand, commandName(env));
}
