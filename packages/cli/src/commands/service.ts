// `parley service install` and `uninstall`: Parley as a systemd unit of the user, which starts with the machine.

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import { ConfigError } from "@parley/chassis/settings";
import { isModelConfigured, openHome, withSecrets } from "@parley/local";

import { findSettings, readSettings } from "../cluster/settings.ts";
import { homePath, viewHome } from "../cluster/target.ts";
import { CliError, exitCodes, note, print, type Io } from "../io/io.ts";
import { homeOption, OptionValues } from "../io/options.ts";
import type { Call, CommandSpec } from "./command.ts";

const repositoryRoot = fileURLToPath(new URL("../../../..", import.meta.url)).replace(/\/$/, "");
const unitName = "parley.service";

/** What differs between units. */
export interface UnitFacts {
  /** The folder of the repository. */
  readonly root: string;
  readonly home: string;
  readonly node: string;
  readonly path: string;
  /** Options of `npm start`. */
  readonly options: readonly string[];
}

/** The unit's text. */
export function unitText({ root, home, node, path, options }: UnitFacts): string {
  const command = [node, join(root, "infra/local/bootstrap.mjs"), "infra/local/src/main.ts", "--no-chat", ...options];
  return `[Unit]
Description=Parley
StartLimitIntervalSec=0

[Service]
WorkingDirectory=${root.replaceAll("%", "%%")}
Environment=${quoted(`PARLEY_HOME=${home}`)} ${quoted(`PATH=${path}`)}
ExecStart=${command.map((word) => quoted(word).replaceAll("$", "$$$$")).join(" ")}
Restart=on-failure
RestartSec=10
# The supervisor stops its services in order; only what is left after the limit is killed.
KillMode=mixed
TimeoutStopSec=150

[Install]
WantedBy=default.target
`;
}

/** One word of a unit, without specifiers. */
function quoted(text: string): string {
  return `"${text.replace(/[\\"]/g, "\\$&").replaceAll("%", "%%")}"`;
}

function unitPath({ env }: Io): string {
  const config = env["XDG_CONFIG_HOME"] || join(env["HOME"] ?? "/root", ".config");
  return join(config, "systemd/user", unitName);
}

/** Throws CliError if systemd refuses or does not run for this user. */
function systemctl(io: Io, ...args: readonly string[]): void {
  const { status, error, stderr } = spawnSync("systemctl", ["--user", ...args], {
    env: { ...io.env },
    encoding: "utf8",
  });
  if (status === 0) return;
  const reason = error === undefined ? stderr.trim().split("\n")[0] : error.message;
  throw new CliError(`systemctl --user ${args.join(" ")} failed: ${reason ?? ""}`, {
    fix: "Without systemd, run Parley in the background with: npx parley up --detach",
  });
}

async function install({ values, positionals, io }: Call): Promise<number> {
  const home = viewHome(homePath(values, io));
  systemctl(io, "show-environment");
  if (home.state !== null) {
    throw new CliError(`Parley already runs on ${home.path} (pid ${home.state.supervisor.pid}).`, {
      fix: "Stop it first: npx parley down",
    });
  }
  const path = unitPath(io);
  mkdirSync(dirname(path), { recursive: true });
  const { path: folder } = openHome(home.path);
  const facts = {
    root: repositoryRoot,
    home: folder,
    node: process.execPath,
    path: io.env["PATH"] ?? "",
    options: positionals,
  };
  writeFileSync(path, unitText(facts));
  systemctl(io, "daemon-reload");
  systemctl(io, "enable", "--now", unitName);
  print(io, `${path} is installed and started.`);
  if (!hasModel(folder, positionals, io)) {
    note(
      io,
      "No model is stored, and a service has no variables of this shell: the rehearsal model answers. Set one up: npx parley onboard",
    );
  }
  note(
    io,
    "State: npx parley status. Log: npx parley logs -f. To keep it running after you log out: loginctl enable-linger",
  );
  return exitCodes.ok;
}

/** Whether the service has a model, without the variables of this shell. Settings that cannot be read are reported by the start. */
function hasModel(home: string, options: readonly string[], io: Io): boolean {
  const service = { ...io, cwd: repositoryRoot, env: { ...withSecrets(home, {}), PARLEY_HOME: home } };
  const values = settingsIn(options);
  try {
    const { settings } = readSettings(findSettings(undefined, values, service), values, service);
    return isModelConfigured(service.env, settings);
  } catch (error) {
    if (error instanceof ConfigError) return true;
    throw error;
  }
}

/** The options of `npm start` that change settings. */
function settingsIn(args: readonly string[]): OptionValues {
  const options = { preset: { type: "string" }, set: { type: "string", multiple: true } } as const;
  const { preset = [], set = [] } = parseArgs({ args: [...args], options, strict: false }).values;
  const values = [["preset", preset] as const, ...[set].flat().map((each) => ["set", each] as const)];
  return new OptionValues(values.filter((entry): entry is ["preset" | "set", string] => typeof entry[1] === "string"));
}

async function uninstall({ io }: Call): Promise<number> {
  const path = unitPath(io);
  if (!existsSync(path)) {
    print(io, `There is no ${path}.`);
    return exitCodes.ok;
  }
  systemctl(io, "disable", "--now", unitName);
  rmSync(path);
  systemctl(io, "daemon-reload");
  print(io, `The service is stopped and ${path} is removed. The data is kept.`);
  return exitCodes.ok;
}

export const serviceCommands: readonly CommandSpec[] = [
  {
    name: "service install",
    summary: "run Parley as a service of your user, started with the machine (systemd)",
    operands: ["[-- <option of npm start>]…"],
    details: `Writes a unit for systemctl --user, enables and starts it. It gets no variables of this shell: keys come from secrets.env in the
data folder, where parley onboard stores them.`,
    options: homeOption,
    examples: ["parley service install", "parley service install -- --port 9000 --preset goat"],
    run: install,
  },
  {
    name: "service uninstall",
    summary: "stop the service and remove its unit; the data stays",
    options: {},
    examples: ["parley service uninstall"],
    run: uninstall,
  },
];
