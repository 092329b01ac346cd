// The command line and environment of `npm start`.

import { join, resolve } from "node:path";
import { parseArgs } from "node:util";

import { errorMessage, presetNames, type ServiceName, services } from "@parley/contracts";

import type { Environment } from "../environment.ts";
import { LocalError } from "../errors.ts";

const defaultHttpPort = 8787;
const maxReplicas = 32;

export const helpText = `npm start -- [options]            start Parley on this machine and open the chat

  --once <text>                   print the answer to one message and exit; uses a new session
  --replicas <service>=<n>[,…]    number of processes of a service (${services.join(", ")})
  --port <port>                   HTTP port (PARLEY_HTTP_PORT, default ${defaultHttpPort}; 0: any free port)
  --preset <name>                 a named set of settings (PARLEY_PRESET; ${presetNames.join(", ")})
  --set <key>=<value>             a setting; overrides parley.toml and the environment; repeatable (--set limits.max_usd=2)
  --home <folder>                 data folder (PARLEY_HOME, default .parley in this folder)
  --no-chat                       show the logs instead of the chat
  -d, --detach                    run in the background; npx parley down stops it
  --help                          show this text

Environment variables: PARLEY__TABLE__KEY for each key of parley.toml, for example PARLEY__LIMITS__MAX_USD=2
PARLEY_HOME PARLEY_HTTP_PORT PARLEY_TOKEN PARLEY_MODEL PARLEY_CONFIG PARLEY_LOG_LEVEL
ANTHROPIC_API_KEY ANTHROPIC_BASE_URL OPENAI_API_KEY OPENAI_BASE_URL
DATABASE_URL (DATABASE_OWNER_URL) REDIS_URL NATS_URL`;

export interface StartOptions {
  readonly help: boolean;
  readonly once: string | null;
  readonly replicas: Partial<Record<ServiceName, number>>;
  readonly httpPort: number;
  /** False for the default port: `--once` then uses any free port. */
  readonly portChosen: boolean;
  readonly home: string;
  /** `key=value`, in order; they override all other sources. */
  readonly settings: readonly string[];
  readonly chat: boolean;
  /** Run in the background, without a terminal. */
  readonly detach: boolean;
}

/** Reads the arguments; flags override the environment. Throws LocalError `bad_option`. */
export function readOptions(args: readonly string[], environment: Environment, cwd: string): StartOptions {
  const values = parse(args);
  if (values.detach === true && values.once !== undefined)
    throw new LocalError("bad_option", "--once waits for its answer: use it without --detach.");
  const port = values.port ?? (environment.PARLEY_HTTP_PORT || undefined);
  return {
    help: values.help === true,
    once: values.once ?? null,
    replicas: readReplicas(values.replicas ?? ""),
    httpPort: port === undefined ? defaultHttpPort : readPort(port),
    portChosen: port !== undefined,
    home: resolve(cwd, values.home ?? (environment.PARLEY_HOME || join(cwd, ".parley"))),
    settings: [...(values.preset === undefined ? [] : [`preset=${values.preset}`]), ...(values.set ?? [])],
    chat: values["no-chat"] !== true,
    detach: values.detach === true,
  };
}

function parse(args: readonly string[]) {
  const options = {
    once: { type: "string" },
    replicas: { type: "string" },
    port: { type: "string" },
    home: { type: "string" },
    preset: { type: "string" },
    set: { type: "string", multiple: true },
    "no-chat": { type: "boolean" },
    detach: { type: "boolean", short: "d" },
    help: { type: "boolean", short: "h" },
  } as const;
  try {
    return parseArgs({ args: [...args], options }).values;
  } catch (error) {
    const [reason = ""] = errorMessage(error).split(". ");
    throw new LocalError("bad_option", `${reason}.`, { fix: "Run `npm start -- --help` for the list of options." });
  }
}

function readReplicas(text: string): Partial<Record<ServiceName, number>> {
  const replicas: Partial<Record<ServiceName, number>> = {};
  for (const part of text.split(",").filter((one) => one !== "")) {
    const [name, count = ""] = part.split("=");
    const service = services.find((one) => one === name);
    if (service === undefined)
      throw new LocalError(
        "bad_option",
        `--replicas: there is no service "${name}". Services: ${services.join(", ")}.`,
      );
    if (!/^\d+$/.test(count) || Number(count) < 1 || Number(count) > maxReplicas) {
      throw new LocalError(
        "bad_option",
        `--replicas: ${service} needs a number from 1 to ${maxReplicas}, for example ${service}=2.`,
      );
    }
    replicas[service] = Number(count);
  }
  return replicas;
}

function readPort(text: string): number {
  if (/^\d+$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new LocalError("bad_option", `"${text}" is not a port: use a number from 0 to 65535.`);
}
