// One entry per tool of the catalogue, with what differs between tools. The walk adds what applies to all of them.
import { execPath } from "node:process";
import type { ToolCallRequest, ToolClass } from "@parley/contracts";
import type { CatalogFixture } from "./fixture.ts";

export type Args = Record<string, unknown>;

export interface Ready {
  args: Args;
  /** Matches the content of a successful result. */
  said: RegExp;
  /** How often the call took effect, counted outside the runner; undefined: it leaves no trace. */
  effects?: () => number;
}

interface Limit {
  what: string;
  args: Args;
  said: RegExp;
}

interface ToolCase {
  /** The tool's effect class. */
  class: ToolClass;
  /** A call that succeeds. `name` is unique; `session` is the session of the call. */
  ready: (fixture: CatalogFixture, name: string, session: Pick<ToolCallRequest, "sessionId">) => Promise<Ready>;
  /** Calls that exceed each limit, and the expected results. */
  limits: (fixture: CatalogFixture, session: Pick<ToolCallRequest, "sessionId">) => Promise<Limit[]>;
  /** A call that would take at least ten seconds; undefined: the tool waits only for the disk and the store. */
  waits?: (fixture: CatalogFixture, session: Pick<ToolCallRequest, "sessionId">) => Promise<Args>;
}

const mebibyte = 1024 * 1024;
const count = (text: string, part: string) => text.split(part).length - 1;
const names = (many: number) => Array.from({ length: many }, (_, index) => `n${String(index).padStart(4, "0")}`);
const adding = (paths: readonly string[]) =>
  ["*** Begin Patch", ...paths.flatMap((path) => [`*** Add File: ${path}`, "+x"]), "*** End Patch"].join("\n");

export const cases: Readonly<Record<string, ToolCase>> = {
  apply_patch: {
    class: "once",
    ready: async ({ put, read }, name) => {
      await put(name, "one\n");
      const patch = `*** Begin Patch\n*** Update File: ${name}\n@@\n-one\n+one\n+one\n*** End Patch`;
      return { args: { patch }, said: /^Updated /, effects: () => count(read(name), "one") - 1 };
    },
    limits: async ({ putHuge }) => {
      await putHuge("patch-huge", 10 * mebibyte + 1);
      const huge = "*** Begin Patch\n*** Update File: patch-huge\n@@\n-a\n+b\n*** End Patch";
      return [
        { what: "a hundred files", args: { patch: adding(names(101)) }, said: /100 files; this one changes 101/ },
        { what: "200,000 characters", args: { patch: "x".repeat(200_001) }, said: /patch: Too big/ },
        { what: "10 MiB a file", args: { patch: huge }, said: /Nothing was changed\. "patch-huge" has 10485761 bytes/ },
      ];
    },
  },
  attach: {
    class: "idempotent",
    ready: async ({ put }, name) => {
      await put(name, `the content of ${name}`);
      return { args: { path: name }, said: /Its id is [0-9a-f]{64}/ };
    },
    limits: async ({ putHuge }) => {
      await putHuge("attach-large", 20 * mebibyte + 1);
      await putHuge("attach-huge", 64 * mebibyte + 1);
      return [
        { what: "the settings' size", args: { path: "attach-large" }, said: /The attachment was rejected: .*20/ },
        {
          what: "the largest configurable size",
          args: { path: "attach-huge" },
          said: /an attachment may have at most 64/,
        },
      ];
    },
  },
  edit: {
    class: "once",
    ready: async ({ put, read }, name) => {
      await put(name, "x");
      const args = { path: name, old_text: "x", new_text: "xy" };
      return { args, said: /^Edited /, effects: () => count(read(name), "y") };
    },
    limits: async ({ put, putHuge }) => {
      await putHuge("edit-huge", 10 * mebibyte + 1);
      await put("edit-twice", "x x");
      const change = { old_text: "x", new_text: "y" };
      return [
        { what: "10 MiB", args: { path: "edit-huge", ...change }, said: /edit accepts files of up to 10485760/ },
        { what: "one place", args: { path: "edit-twice", ...change }, said: /occurs 2 times/ },
      ];
    },
  },
  exec: {
    class: "once",
    ready: async ({ site }, name) => ({
      args: { command: `'${execPath}' -e "fetch('${site.url}/effect/${name}').then((a) => a.text())"; echo over` },
      said: /^over\n.*exit code 0/s,
      effects: () => site.asked(`/effect/${name}`),
    }),
    limits: async () => [
      { what: "100,000 characters", args: { command: "x".repeat(100_001) }, said: /command: Too big/ },
      { what: "1,800 seconds", args: { command: "true", timeout_seconds: 1_801 }, said: /timeout_seconds: Too big/ },
      { what: "its wall time", args: { command: "echo a; sleep 60", timeout_seconds: 1 }, said: /^a\n.*1 s/s },
      {
        what: "28,000 bytes of output",
        args: { command: "yes | head -c 50000" },
        said: /22000 of 50000 bytes are omitted here/,
      },
    ],
    waits: async () => ({ command: "echo begun; sleep 60", wait_seconds: 60 }),
  },
  glob: {
    class: "pure",
    ready: async ({ put }, name) => {
      await put(`globbed/${name}.txt`, "");
      return { args: { pattern: `${name}.*` }, said: new RegExp(`^globbed/${name}\\.txt$`) };
    },
    limits: async ({ put }) => {
      await Promise.all(names(501).map((name) => put(`globs/${name}.many`, "")));
      return [
        { what: "500 files", args: { pattern: "*.many" }, said: /Truncated: only the first 500 are shown/ },
        { what: "1,000 characters", args: { pattern: "x".repeat(1_001) }, said: /pattern: Too big/ },
      ];
    },
  },
  grep: {
    class: "pure",
    ready: async ({ put }, name) => {
      await put(`grepped/${name}`, `needle ${name}\n`);
      return { args: { pattern: `needle ${name}$` }, said: new RegExp(`^grepped/${name}:1: needle`) };
    },
    limits: async ({ put }) => {
      await put("hay", "straw\n".repeat(1_001));
      await put("hay-wide", `${"s".repeat(5_000)}wide\n`);
      return [
        { what: "100 hits", args: { pattern: "straw" }, said: /Truncated: only the first 100 are shown/ },
        { what: "1,000 hits", args: { pattern: "straw", limit: 1_001 }, said: /limit: Too big/ },
        { what: "20 lines around", args: { pattern: "straw", context: 21 }, said: /context: Too big/ },
        { what: "400 characters of a line", args: { pattern: "wide$" }, said: /^hay-wide:1: .{0,3}s{100,400}wide$/ },
      ];
    },
    waits: async ({ put }) => {
      await put("backtracks", `${"a".repeat(22)}b\n`.repeat(4_000));
      return { pattern: "^(?=a)(a+)+$", path: "backtracks" };
    },
  },
  ls: {
    class: "pure",
    ready: async ({ put }, name) => {
      await put(`listed-${name}/one`, "");
      return { args: { path: `listed-${name}` }, said: /^file\s+0 {2}one$/ };
    },
    limits: async ({ put }) => {
      await Promise.all(names(501).map((name) => put(`long/${name}`, "")));
      return [{ what: "500 entries", args: { path: "long" }, said: /1 of 501 entries are not shown/ }];
    },
  },
  notebook_edit: {
    class: "once",
    ready: async ({ put, read }, name) => {
      await put(`${name}.ipynb`, JSON.stringify({ nbformat: 4, nbformat_minor: 5, metadata: {}, cells: [] }));
      const cell = { new_source: "inserted", cell_type: "markdown", edit_mode: "insert" };
      const effects = () => count(read(`${name}.ipynb`), "inserted");
      return { args: { path: `${name}.ipynb`, ...cell }, said: /^Inserted cell 1 /, effects };
    },
    limits: async ({ put, putHuge }) => {
      await putHuge("notebook-huge.ipynb", 5 * mebibyte + 1);
      await put("notebook-empty.ipynb", JSON.stringify({ nbformat: 4, metadata: {}, cells: [] }));
      const change = { cell_number: 1, new_source: "x" };
      return [
        { what: "5 MiB", args: { path: "notebook-huge.ipynb", ...change }, said: /notebooks of up to 5242880/ },
        { what: "its cells", args: { path: "notebook-empty.ipynb", ...change }, said: /none with the number 1/ },
      ];
    },
  },
  process: {
    class: "once",
    ready: async ({ home, workspace, read }, name, { sessionId }) => {
      const id = await home.begin(sessionId, `cat >> '${workspace}/${name}'`);
      const args = { action: "input", id, input: "effect\n" };
      return { args, said: /^Written: 7 characters/, effects: () => count(read(name), "effect") };
    },
    limits: async ({ home }, { sessionId }) => {
      const id = await home.begin(sessionId, "yes | head -c 150000; sleep 600");
      return [
        { what: "120 seconds", args: { action: "poll", id, wait_seconds: 121 }, said: /wait_seconds: Too big/ },
        { what: "30,000 characters", args: { action: "log", id, limit: 30_001 }, said: /limit: Too big/ },
        { what: "its session", args: { action: "poll", id: "none@home" }, said: /No process/ },
      ];
    },
    waits: async ({ home }, { sessionId }) => {
      const id = await home.begin(sessionId, "sleep 600");
      return { action: "poll", id, wait_seconds: 120 };
    },
  },
  read: {
    class: "pure",
    ready: async ({ put }, name) => {
      await put(name, "still here\n");
      return { args: { path: name }, said: /1\tstill here/ };
    },
    limits: async ({ put }) => {
      await put("many-lines", "line\n".repeat(2_001));
      return [
        { what: "2,000 lines", args: { path: "many-lines" }, said: /read\(\{.*"offset":2001/ },
        { what: "10,000 lines", args: { path: "many-lines", limit: 10_001 }, said: /limit: Too big/ },
      ];
    },
  },
  save_attachment: {
    class: "idempotent",
    ready: async ({ receive, read }, name, { sessionId }) => {
      const id = await receive(sessionId, Buffer.from(`saved ${name}`));
      const effects = () => count(read(name), `saved ${name}`);
      return { args: { id, path: name }, said: /^Saved as /, effects };
    },
    limits: async () => [
      { what: "what an id is", args: { id: "abc", path: "x" }, said: /id: / },
      { what: "what is kept", args: { id: "0".repeat(64), path: "x" }, said: /The attachment was rejected/ },
    ],
  },
  web_fetch: {
    class: "pure",
    ready: async ({ site }, name) => ({
      args: { url: `${site.url}/page/${name}` },
      said: new RegExp(`This is /page/${name}\\.`),
      effects: () => site.asked(`/page/${name}`),
    }),
    limits: async ({ site }) => [
      {
        what: "max_chars",
        args: { url: `${site.url}/page/long`, max_chars: 100 },
        said: /web_fetch\(\{.*"offset":100/,
      },
      { what: "50,000 characters", args: { url: site.url, max_chars: 50_001 }, said: /max_chars: Too big/ },
      { what: "8,000 characters", args: { url: `${site.url}/${"x".repeat(8_000)}` }, said: /url: Too big/ },
      { what: "five redirects", args: { url: `${site.url}/redirect/7` }, said: /redirects more than 5 times/ },
    ],
    waits: async ({ site }) => ({ url: `${site.url}/never/page` }),
  },
  web_search: {
    class: "pure",
    ready: async ({ site }, name) => ({
      args: { query: name },
      said: /1\. hit 1\n/,
      effects: () => site.asked(`/search?q=${name}&format=json`),
    }),
    limits: async () => [
      { what: "twenty hits", args: { query: "x", count: 21 }, said: /count: Too big/ },
      { what: "count", args: { query: "x", count: 1 }, said: /1\. hit 1\n(?![^]*2\. hit 2)/ },
      { what: "600 characters of a hit", args: { query: "x", count: 1 }, said: /\n {3}x{600}…\n/ },
      { what: "400 characters", args: { query: "x".repeat(401) }, said: /query: Too big/ },
    ],
    waits: async () => ({ query: "never" }),
  },
  write: {
    class: "idempotent",
    ready: async ({ read }, name) => ({
      args: { path: name, content: "once\n" },
      said: /^(?:Created|Replaced) /,
      effects: () => count(read(name), "once\n"),
    }),
    limits: async () => [
      { what: "255 bytes of a name", args: { path: "n".repeat(256), content: "" }, said: /too long/ },
      { what: "the workspace", args: { path: "../outside", content: "" }, said: /outside/ },
    ],
  },
};
