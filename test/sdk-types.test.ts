// docs/sdk.md names everything that the type definitions of the Claude Agent SDK define.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { HOOK_EVENTS, type SDKMessage } from "@anthropic-ai/claude-agent-sdk";
import { readHookEvent } from "../packages/cli/src/run/hook-events.ts";
import type { SdkMessage } from "../packages/projections/src/sdk-types.ts";

const types = readFileSync(new URL("sdk.d.ts", import.meta.resolve("@anthropic-ai/claude-agent-sdk")), "utf8");
const page = readFileSync(new URL("../docs/sdk.md", import.meta.url), "utf8");

/** The text of a declaration, up to its closing line. */
function declaration(head: string): string {
  const from = types.indexOf(head);
  assert.notEqual(from, -1, `the package no longer declares: ${head}`);
  return types.slice(from, types.indexOf("\n}", from));
}

/** The names that match in a declaration, sorted and once each. */
function names(text: string, pattern: RegExp): string[] {
  return [...new Set([...text.matchAll(pattern)].flatMap(([, name]) => name ?? []))].toSorted();
}

/** The names in the first cells of the tables whose first column has this head. */
function documented(head: string): string[] {
  const tables = page.split(/\n{2,}/).filter((block) => block.startsWith(`| ${head} |`));
  assert.notEqual(tables.length, 0, `docs/sdk.md has no table of ${head}s`);
  const cells = tables.flatMap((table) => table.split("\n").slice(2)).map((row) => row.split("|")[1] ?? "");
  return names(cells.join("\n"), /`([A-Za-z_]+)(?:\(\)|: [^`]*)?`/g);
}

test("lists every option of the SDK", () => {
  const options = names(declaration("export declare type Options = {"), /^ {4}([A-Za-z]+)\??:/gm);
  assert.ok(options.length > 60);
  const listed = new Set(documented("option"));
  assert.deepEqual(
    options.filter((name) => !listed.has(name)),
    [],
  );
});

test("lists every method of a query", () => {
  const methods = names(declaration("export declare interface Query extends"), /^ {4}([A-Za-z]+)\(/gm);
  assert.deepEqual(documented("method of a query"), methods);
});

test("lists every hook of the SDK", () => {
  assert.deepEqual(documented("hook"), [...HOOK_EVENTS].toSorted());
});

// design: 003.46
test("calls exactly the hooks that the page says are called", () => {
  const rows = page.split("\n").filter((row) => row.includes("`PreToolUse`") && row.endsWith("| called |"));
  const called = new Set(names(rows.join("\n"), /`([A-Za-z]+)`/g));
  assert.equal(called.size, 16);
  for (const event of HOOK_EVENTS) {
    if (called.has(event)) assert.equal(readHookEvent(event), event);
    else assert.throws(() => readHookEvent(event), new RegExp(`${event} cannot be called for a program: .{10}`));
  }
});

// design: 003.41b
test("lists every message of the SDK, and those that only Parley sends", () => {
  const [, union = ""] = /export declare type SDKMessage = ([^;]+);/.exec(types) ?? [];
  const members = union.split("|").map((name) => name.trim());
  const messages = members.flatMap((name) => {
    // The result is a union of its own.
    if (name === "SDKResultMessage") return ["result"];
    const body = declaration(`export declare type ${name} = {`);
    return names(body, /^ {4}subtype: '([a-z_]+)';/gm)
      .concat(names(body, /^ {4}type: '([a-z_]+)';/gm))
      .slice(0, 1);
  });
  const own = ["permission_request", "permission_decided", "model_fallback", "user_question", "notice"];
  assert.deepEqual(documented("message"), [...new Set([...messages, ...own])].toSorted());
});

type Mutable<T> = T extends object ? { -readonly [K in keyof T]: Mutable<T[K]> } : T;
type Body<T, S extends string> = Omit<Extract<T, { type: "system"; subtype: S }>, "uuid">;
/** True if every message of this subtype has the fields of the SDK's type; the compiler checks it. */
type Fits<S extends string> = Mutable<Body<SdkMessage, S>> extends Body<SDKMessage, S> ? true : never;

// design: 003.41
test("sends system messages with the fields of the SDK's types", () => {
  const fits: Record<string, true> = {
    compact_boundary: true satisfies Fits<"compact_boundary">,
    api_retry: true satisfies Fits<"api_retry">,
    task_started: true satisfies Fits<"task_started">,
    task_notification: true satisfies Fits<"task_notification">,
    permission_denied: true satisfies Fits<"permission_denied">,
    hook_started: true satisfies Fits<"hook_started">,
    hook_response: true satisfies Fits<"hook_response">,
  };
  const sent = documented("message");
  assert.deepEqual(
    Object.keys(fits).filter((name) => !sent.includes(name)),
    [],
  );
});
