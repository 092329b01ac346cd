// The first lines of a chat, the line below its input, and its last lines. Pure.

import type { Cost, SessionSummary } from "@parley/contracts";

import { asTyped } from "../io/command-name.ts";
import { indented, stripControl } from "../tables/format.ts";
import { costText } from "../tables/sessions.ts";

export interface AgentFacts {
  readonly version: string;
  readonly model: { readonly provider: string; readonly model: string } | null;
  readonly tools: readonly string[];
  readonly permissionMode: string;
  /** The isolation of commands; null: unknown. */
  readonly workspace: string | null;
}

/** `rehearsal` for a model that is called like its provider. */
function modelName(model: AgentFacts["model"]): string {
  if (model === null) return "unknown: no agent-core answers";
  return model.provider === model.model ? model.model : `${model.provider}:${model.model}`;
}

/** The title of a session, else its key. */
function sessionName(session: SessionSummary | null): string {
  if (session === null) return "new";
  return stripControl(session.title ?? session.key.replace(/^http:default:/, ""));
}

export interface ChatPlaces {
  /** The folder of the tools' files, if it is on this machine. */
  readonly folder: string | null;
  /** Where the web console is. */
  readonly consoleUrl: string | null;
}

export function bannerLines(
  facts: AgentFacts | null,
  session: SessionSummary | null,
  { folder, consoleUrl }: ChatPlaces,
): string[] {
  if (facts === null)
    return [`session    ${sessionName(session)}`, "agent      unknown: the gateway does not describe it"];
  // A name of the settings counts before the folder of the cluster.
  const worksIn = session?.overrides.workspace ?? folder;
  const count = session === null || session.messageCount === 0 ? "" : ` (${session.messageCount} messages)`;
  return [
    `model      ${modelName(facts.model)}`,
    `session    ${sessionName(session)}${count}`,
    `tools      ${facts.tools.length}, permission mode ${facts.permissionMode}`,
    ...(worksIn === null ? [] : indented("folder     ", stripControl(worksIn), bannerColumns)),
    ...indented(
      "isolation  ",
      facts.workspace === null ? "unknown: no tool-runner answers" : stripControl(facts.workspace),
      bannerColumns,
    ),
    ...(consoleUrl === null ? [] : [`console    ${consoleUrl}`]),
  ];
}

/** Columns of the narrowest terminal on which the banner is complete. */
const bannerColumns = 80;

export interface Spent {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cost: Cost;
}

/** The line below the input: the title is last, because a narrow terminal cuts off the end. */
export function footerText(facts: AgentFacts | null, session: SessionSummary | null, spent: Spent): string {
  const tokens = spent.inputTokens + spent.outputTokens;
  const parts = [
    facts === null ? "" : modelName(facts.model),
    facts === null || facts.permissionMode === "default" ? "" : `mode ${facts.permissionMode}`,
    tokens === 0 ? "" : `${shortNumber(tokens)} tokens`,
    tokens === 0 || spent.cost.micros + spent.cost.unpricedCalls === 0 ? "" : costText(spent.cost),
    sessionName(session),
  ];
  return parts.filter((part) => part !== "").join(" · ");
}

/** `980`, `12.3k`, `1.2M`. */
function shortNumber(value: number): string {
  if (value < 1_000) return String(value);
  return value < 1_000_000 ? `${(value / 1_000).toFixed(1)}k` : `${(value / 1_000_000).toFixed(1)}M`;
}

/** What leaving means. `cluster`: it was not started with the chat, it stops with it, or the person keeps it. */
export function farewell(session: SessionSummary | null, cluster: "separate" | "stops" | "kept"): string {
  if (cluster === "stops") return "Stopping the cluster. Messages that wait are stored; npm start continues them.";
  const named = session === null ? "" : ` --resume ${session.sessionId}`;
  return `${cluster === "kept" ? "" : "The cluster goes on without this chat. "}Come back with: ${asTyped("parley chat")}${named}`;
}
