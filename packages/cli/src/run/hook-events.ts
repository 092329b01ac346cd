// The hook events of the Claude Agent SDK: those that a run calls, what their outputs can change, and why the others are refused. Pure.

/** What the output of each called event can change, apart from `continue: false`, which ends the turn. */
const honoured = {
  PreToolUse: ["permissionDecision", "permissionDecisionReason", "updatedInput"],
  PermissionRequest: ["decision"],
  PermissionDenied: [],
  PostToolUse: [],
  PostToolUseFailure: [],
  PostToolBatch: [],
  UserPromptSubmit: ["additionalContext"],
  SessionStart: ["additionalContext"],
  SessionEnd: [],
  Stop: ["additionalContext"],
  StopFailure: [],
  SubagentStart: [],
  SubagentStop: [],
  PreCompact: [],
  PostCompact: [],
  Notification: [],
} as const satisfies Record<string, readonly string[]>;

export type HookEvent = keyof typeof honoured;

const hookEvents = Object.keys(honoured) as HookEvent[];

/** Events whose matcher matches the name of a tool, by any of its names. */
const toolEvents: ReadonlySet<HookEvent> = new Set([
  "PreToolUse",
  "PermissionRequest",
  "PermissionDenied",
  "PostToolUse",
  "PostToolUseFailure",
]);

export function isToolEvent(event: HookEvent): boolean {
  return toolEvents.has(event);
}

const ofCluster = "it belongs to the cluster, not to a run";
const noTeam = "there are no teams of agents";

/** Events that are refused, with the reason. */
const refusals: Readonly<Record<string, string>> = {
  UserPromptExpansion: "commands are executed and never become prompts",
  PreModelSwitch: "the state of the provider's prompt cache and its price are not known here",
  PostModelSwitch: "the state of the provider's prompt cache and its price are not known here",
  Setup: "a run has no setup phase",
  TeammateIdle: noTeam,
  TaskCreated: noTeam,
  TaskCompleted: noTeam,
  Elicitation: "elicitations go to the people of the cluster",
  ElicitationResult: "elicitations go to the people of the cluster",
  ConfigChange: `the configuration cannot be watched: ${ofCluster}`,
  InstructionsLoaded: `the agent's documents cannot be watched: ${ofCluster}`,
  WorktreeCreate: `the workspace is fixed: ${ofCluster}`,
  WorktreeRemove: `the workspace is fixed: ${ofCluster}`,
  CwdChanged: `the workspace is fixed: ${ofCluster}`,
  FileChanged: `files are not watched: ${ofCluster}`,
  DirectoryAdded: `the workspace is fixed: ${ofCluster}`,
  MessageDisplay: "the program itself displays the messages",
};

/** Throws Error with the reason for an event that is not called. */
export function readHookEvent(name: string): HookEvent {
  const event = hookEvents.find((each) => each === name);
  if (event !== undefined) return event;
  const reason = refusals[name] ?? "there is no such event";
  throw new Error(`hooks: ${name} cannot be called for a program: ${reason}; supported: ${hookEvents.join(", ")}`);
}

/** The fields of an output's `hookSpecificOutput` that change nothing here. */
export function fieldsWithoutEffect(event: HookEvent, specific: object): string[] {
  const known: readonly string[] = honoured[event];
  return Object.keys(specific).filter((field) => field !== "hookEventName" && !known.includes(field));
}
