// Maps argument names of other agent designs to Parley's. Models often use the names they were trained on; calls are normalized
// before hooks, permissions and the tool see them. Pure.
import { parseJsonObject } from "@parley/kit";

const ofSpawn = { name: "label" };

/** Tool → foreign name → Parley's name. Only where the meaning, unit and format of the value are the same. */
const elsewhere: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  apply_patch: { input: "patch" },
  edit: { file_path: "path", old_string: "old_text", new_string: "new_text", replaceAll: "replace_all" },
  exec: { cmd: "command", working_dir: "workdir", cwd: "workdir", run_in_background: "background" },
  glob: { directory: "path" },
  grep: { glob: "include", output_mode: "mode", head_limit: "limit", "-i": "ignore_case", "-C": "context" },
  ls: { directory: "path" },
  memory_get: { file_path: "path" },
  memory_search: { maxResults: "max_results", minScore: "min_score" },
  notebook_edit: { notebook_path: "path", file_path: "path" },
  process: { process_id: "id", pid: "id", task_id: "id", shell_id: "id", bash_id: "id" },
  read: { file_path: "path" },
  sessions_history: { sessionId: "session_id" },
  // The settings choose one of these names.
  sessions_spawn: ofSpawn,
  delegate: ofSpawn,
  spawn: ofSpawn,
  Agent: ofSpawn,
  sessions_send: { sessionId: "session_id", message: "content" },
  web_fetch: { extractMode: "extract", maxChars: "max_chars" },
  web_search: { q: "query" },
  write: { file_path: "path" },
};

/**
 * Tool → foreign arguments without an effect here: `description` explains a command to the person at the terminal, lines always have
 * numbers, and the model itself reads what it would ask about a page.
 */
const withoutEffect: Readonly<Record<string, readonly string[]>> = {
  exec: ["description"],
  grep: ["-n"],
  web_fetch: ["prompt"],
};

type Arguments = Record<string, unknown>;

/**
 * Aliases whose arguments have other meanings, units or defaults than those of the tool: the name by which the model called it decides. Each
 * keeps arguments that already are Parley's.
 */
const byAlias: Readonly<Record<string, (args: Arguments) => Arguments>> = {
  Bash: ({ timeout, ...args }) =>
    isMs(timeout) ? { ...args, timeout_seconds: seconds(timeout) } : withField(args, { timeout }),
  Grep: searchOf,
  TaskOutput: pollOf,
  BashOutput: ({ block, ...args }) => pollOf({ ...args, block: block ?? false }),
  TaskStop: stopOf,
  KillShell: stopOf,
  memory_recall: (args) => ("max_results" in args ? args : { ...args, max_results: recalledNotes }),
};

/** Results of a call named `memory_recall` that does not say how many. */
const recalledNotes = 10;

/** The wait of a call that names none, and the longest wait of `process`, in milliseconds. */
const [defaultBlockMs, longestBlockMs] = [30_000, 120_000];

function pollOf({ block = true, timeout = defaultBlockMs, ...args }: Arguments): Arguments {
  if ("action" in args || typeof block !== "boolean" || !isMs(timeout)) return args;
  return { action: "poll", ...args, wait_seconds: block ? seconds(Math.min(timeout, longestBlockMs)) : 0 };
}

/** Lines before and lines after a hit become lines around it. */
function searchOf({ "-A": after, "-B": before, multiline, ...args }: Arguments): Arguments {
  const lines = [after, before].filter((value) => value !== undefined);
  const around = lines.every((value) => typeof value === "number") && !("context" in args);
  const context = lines.length > 0 && around ? { context: Math.max(...lines) } : {};
  const mode = args["mode"] === "files_with_matches" ? { mode: "files" } : {};
  const kept = { ...(around ? {} : { "-A": after, "-B": before }), ...(multiline === false ? {} : { multiline }) };
  return withField({ ...args, ...context, ...mode }, kept);
}

function stopOf(args: Arguments): Arguments {
  return "action" in args ? args : { action: "signal", ...args };
}

function isMs(value: unknown): value is number {
  return typeof value === "number" && value >= 0;
}

function seconds(ms: number): number {
  return Math.ceil(ms / 1_000);
}

/** `args` with the fields of `more` that are defined. */
function withField(args: Arguments, more: Arguments): Arguments {
  return { ...args, ...Object.fromEntries(Object.entries(more).filter(([, value]) => value !== undefined)) };
}

/**
 * A call's arguments (JSON text) with Parley's names and without foreign ones that have no effect; the unchanged text if there is
 * nothing to change. If a call contains both names, both stay, and the tool rejects the call. `calledAs`: the name by which the model
 * called the tool.
 */
export function normalizeArguments(tool: string, input: string, calledAs = tool): string {
  const names = Object.hasOwn(elsewhere, tool) ? elsewhere[tool] : undefined;
  if (names === undefined) return input;
  const dropped = Object.hasOwn(withoutEffect, tool) ? (withoutEffect[tool] ?? []) : [];
  const written = parseJsonObject(input);
  if (written === undefined) return input;
  const taken = new Set(Object.keys(written));
  const kept = Object.entries(written).filter(([name]) => !dropped.includes(name));
  let changed = kept.length < taken.size;
  const convert = Object.hasOwn(byAlias, calledAs) ? byAlias[calledAs] : undefined;
  const renamed = kept.map(([name, value]): [string, unknown] => {
    const own = Object.hasOwn(names, name) ? names[name] : undefined;
    if (own === undefined || taken.has(own)) return [name, value];
    taken.add(own);
    changed = true;
    return [own, value];
  });
  const args = Object.fromEntries(renamed);
  const converted = convert === undefined ? args : convert(args);
  return changed || converted !== args ? JSON.stringify(converted) : input;
}
