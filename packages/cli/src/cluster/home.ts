// Finds the data folder and reads the state of the cluster that runs on it.

import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

import { readState, type ClusterState } from "@parley/local";

import type { OptionValues } from "../command-line/options.ts";
import type { Io } from "../io.ts";

export interface HomeView {
  readonly path: string;
  /** The running cluster; null when none runs. */
  readonly state: ClusterState | null;
  /** A supervisor died without removing its state file. */
  readonly abandoned: boolean;
}

/** --home, PARLEY_HOME, the nearest `.parley` in this folder or a parent, or `.parley` here, in this order. */
export function homePath(values: OptionValues, io: Io): string {
  const given = values.text("home") ?? io.env["PARLEY_HOME"];
  if (given !== undefined && given !== "") return resolve(io.cwd, given);
  for (let folder = io.cwd; ; folder = dirname(folder)) {
    const candidate = join(folder, ".parley");
    if (existsSync(candidate)) return candidate;
    if (dirname(folder) === folder) return join(io.cwd, ".parley");
  }
}

export function viewHome(path: string): HomeView {
  const state = readState(path);
  return { path, state, abandoned: state === null && existsSync(join(path, "state.json")) };
}
