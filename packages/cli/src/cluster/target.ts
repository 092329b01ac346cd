// Which gateways to ask, and with which token. The token is read from a file or the environment, never from an argument.

import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";

import { errorMessage } from "@parley/contracts";

import type { OptionValues } from "../command-line/options.ts";
import { CliError, UsageError } from "../errors.ts";
import { note, type Io } from "../io.ts";
import { homePath, viewHome, type HomeView } from "./home.ts";

const DEFAULT_PORT = 8787;

export interface Target {
  readonly home: HomeView;
  /** The gateways were named: nothing on this machine says how they are, or starts them. */
  readonly elsewhere: boolean;
  /** Looks again: a cluster that was started anew may have other ports. */
  urls(): readonly string[];
  /** Throws CliError when there is none. */
  token(): string;
}

export function findTarget(values: OptionValues, io: Io): Target {
  const path = homePath(values, io);
  const given = values.text("url") ?? (io.env["PARLEY_URL"] || undefined);
  const fixed = given === undefined ? null : given.split(",").map((url) => gatewayUrl(url, io));
  return {
    // What runs on this machine says nothing about a gateway that was named.
    home: fixed === null ? viewHome(path) : { path, state: null, abandoned: false },
    elsewhere: fixed !== null,
    urls: () => fixed ?? viewHome(path).state?.httpUrls ?? [defaultUrl(io)],
    token: () => readToken(values, io, path, fixed !== null),
  };
}

function defaultUrl(io: Io): string {
  return `http://127.0.0.1:${io.env["PARLEY_HTTP_PORT"] || DEFAULT_PORT}`;
}

function gatewayUrl(text: string, io: Io): string {
  const url = URL.parse(text.trim());
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw new UsageError(`--url: "${text}" is no gateway's address; it looks like http://127.0.0.1:8787.`);
  }
  const loopback = ["localhost", "127.0.0.1", "[::1]"].includes(url.hostname);
  if (url.protocol === "http:" && !loopback) {
    note(io, `careful: the token goes to ${url.host} unencrypted; use https where you can`);
  }
  if (url.username !== "" || url.password !== "")
    throw new UsageError("--url must not hold a login; use --token-file.");
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
}

/** --token-file, else PARLEY_TOKEN, else the data folder's. */
function readToken(values: OptionValues, io: Io, home: string, elsewhere: boolean): string {
  const given = values.text("token-file");
  if (given !== undefined) return tokenIn(resolve(io.cwd, given));
  const fromEnvironment = io.env["PARLEY_TOKEN"];
  if (fromEnvironment !== undefined && fromEnvironment !== "") return fromEnvironment;
  const kept = join(home, "token");
  try {
    return tokenIn(kept);
  } catch (error) {
    if (elsewhere) throw error;
    throw new CliError(`Nothing has run on ${home} yet: there is no token.`, {
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
    throw new CliError(`The token cannot be read: ${errorMessage(error)}`, { fix: "Name its file with --token-file." });
  }
  if (!/^\S+$/.test(token)) throw new CliError(`${file} holds no token.`);
  return token;
}
