// Finds the data folder, the gateways and the token. The token comes from a file or the environment, never from an argument.

import { existsSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

import { errorMessage } from "@parley/contracts";
import { type ClusterState, readRunningState } from "@parley/local";

import { CliError, type Io, note, UsageError } from "../io/io.ts";
import type { OptionValues } from "../io/options.ts";

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
  const state = readRunningState(path);
  return { path, state, abandoned: state === null && existsSync(join(path, "state.json")) };
}

const defaultPort = 8787;

export interface Target {
  readonly home: HomeView;
  /** --url or PARLEY_URL was given; local state is not consulted. */
  readonly explicitUrl: boolean;
  /** Reads the current state each time: a restarted cluster may have other ports. */
  urls(): readonly string[];
  /** Throws CliError when there is none. */
  token(): string;
}

export function findTarget(values: OptionValues, io: Io): Target {
  const path = homePath(values, io);
  const given = values.text("url") ?? (io.env["PARLEY_URL"] || undefined);
  const fixed = given === undefined ? null : given.split(",").map((url) => gatewayUrl(url, io));
  return {
    // The local cluster is unrelated to a gateway that was named.
    home: fixed === null ? viewHome(path) : { path, state: null, abandoned: false },
    explicitUrl: fixed !== null,
    urls: () => fixed ?? viewHome(path).state?.httpUrls ?? [defaultUrl(io)],
    token: () => readToken(values, io, path, fixed !== null),
  };
}

function defaultUrl(io: Io): string {
  return `http://127.0.0.1:${io.env["PARLEY_HTTP_PORT"] || defaultPort}`;
}

function gatewayUrl(text: string, io: Io): string {
  const url = URL.parse(text.trim());
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw new UsageError(`--url: "${text}" is not a gateway address such as http://127.0.0.1:8787.`);
  }
  const loopback = ["localhost", "127.0.0.1", "[::1]"].includes(url.hostname);
  if (url.protocol === "http:" && !loopback) {
    note(io, `warning: the token is sent to ${url.host} unencrypted; use https if possible`);
  }
  if (url.username !== "" || url.password !== "")
    throw new UsageError("--url must not contain a login; use --token-file.");
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
}

/** --token-file, PARLEY_TOKEN or the token of the data folder, in this order. */
function readToken(values: OptionValues, io: Io, home: string, explicitUrl: boolean): string {
  const given = values.text("token-file");
  if (given !== undefined) return tokenIn(resolve(io.cwd, given));
  const fromEnvironment = io.env["PARLEY_TOKEN"];
  if (fromEnvironment !== undefined && fromEnvironment !== "") return fromEnvironment;
  const kept = join(home, "token");
  try {
    return tokenIn(kept);
  } catch (error) {
    if (explicitUrl) throw error;
    throw new CliError(`There is no token in ${home}: no cluster has run there yet.`, {
      fix: "Start it with: npm start   (or name the data folder with --home)",
      cause: error,
    });
  }
}

function tokenIn(file: string): string {
  let token: string;
  try {
    token = readFileSync(file, "utf8").trim();
  } catch (error) {
    throw new CliError(`Cannot read the token: ${errorMessage(error)}`, { fix: "Name its file with --token-file." });
  }
  if (!/^\S+$/.test(token)) throw new CliError(`${file} contains no token.`);
  return token;
}
