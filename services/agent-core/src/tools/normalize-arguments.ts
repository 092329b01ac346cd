// Maps argument names of other agent designs to Parley's. Models often use the names they were trained on; calls are normalized
// before hooks, permissions and the tool see them. Pure.
import { parseJsonObject } from "@parley/kit";

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
  sessions_send: { sessionId: "session_id", message: "content" },
  web_fetch: { extractMode: "extract", maxChars: "max_chars" },
  web_search: { q: "query" },
  write: { file_path: "path" },
};

/** Tool → foreign arguments without an effect here: `description` explains a command to the person at the terminal. */
const withoutEffect: Readonly<Record<string, readonly string[]>> = { exec: ["description"] };

/**
 * A call's arguments (JSON text) with Parley's names and without foreign ones that have no effect; the unchanged text if there is
 * nothing to change. If a call contains both names, both stay, and the tool rejects the call.
 */
export function normalizeArguments(tool: string, input: string): string {
  const names = Object.hasOwn(elsewhere, tool) ? elsewhere[tool] : undefined;
  if (names === undefined) return input;
  const dropped = Object.hasOwn(withoutEffect, tool) ? (withoutEffect[tool] ?? []) : [];
  const written = parseJsonObject(input);
  if (written === undefined) return input;
  const taken = new Set(Object.keys(written));
  const kept = Object.entries(written).filter(([name]) => !dropped.includes(name));
  let changed = kept.length < taken.size;
  const renamed = kept.map(([name, value]): [string, unknown] => {
    const own = Object.hasOwn(names, name) ? names[name] : undefined;
    if (own === undefined || taken.has(own)) return [name, value];
    taken.add(own);
    changed = true;
    return [own, value];
  });
  return changed ? JSON.stringify(Object.fromEntries(renamed)) : input;
}
