// parley.toml: the shared settings of a deployment. It contains no secrets, only the names of their environment variables.
import { z } from "zod";
import { AgentSettings, OutputSettings, profileNames, ProfilesSettings, SubagentSettings } from "./agent.ts";
import { AttachmentSettings } from "./attachments.ts";
import { ChannelSettings, WebhooksSettings } from "./channels.ts";
import { CheckpointSettings } from "./checkpoints.ts";
import { CompactionSettings } from "./compaction.ts";
import { ContextSettings } from "./context.ts";
import { HeartbeatSettings } from "./heartbeat.ts";
import { HooksSettings } from "./hooks.ts";
import { LimitSettings } from "./limits.ts";
import { LlmsSettings } from "./llm.ts";
import { MemorySettings } from "./memory.ts";
import { McpSettings } from "./mcp.ts";
import { ModelsSettings } from "./models.ts";
import { ObserversSettings } from "./observers.ts";
import { OidcSettings } from "./oidc.ts";
import { PeopleSettings } from "./people.ts";
import { PermissionSettings } from "./permissions.ts";
import { QueueSettings } from "./queue.ts";
import { SessionSettings } from "./session.ts";
import { ToolSettings } from "./tools.ts";
import { VoiceSettings } from "./voice.ts";
import { WorkspaceSettings } from "./workspace.ts";

export { personLimitsOf } from "./people.ts";

export const presetNames = ["singleton", "steered", "delegate", "repl", "goat", "nanobot"] as const;

const Settings = z.strictObject({
  /** A named set of defaults; settings in this file override it. */
  preset: z.enum(presetNames).optional(),
  session: SessionSettings,
  queue: QueueSettings,
  agent: AgentSettings,
  output: OutputSettings,
  profiles: ProfilesSettings,
  subagents: SubagentSettings,
  limits: LimitSettings,
  models: ModelsSettings,
  llm: LlmsSettings,
  context: ContextSettings,
  compaction: CompactionSettings,
  workspace: WorkspaceSettings,
  checkpoints: CheckpointSettings,
  attachments: AttachmentSettings,
  memory: MemorySettings,
  tools: ToolSettings,
  mcp: McpSettings,
  voice: VoiceSettings,
  permissions: PermissionSettings,
  people: PeopleSettings,
  heartbeat: HeartbeatSettings,
  hooks: HooksSettings,
  observers: ObserversSettings,
  channels: ChannelSettings,
  webhooks: WebhooksSettings,
  oidc: OidcSettings,
});

/** All settings; every profile that one of them names exists. */
export const ParleySettingsSchema = Settings.superRefine((settings, context) => {
  const known = profileNames(settings);
  const check = (profile: string | undefined, path: string[]) => {
    if (profile === undefined || known.includes(profile)) return;
    context.addIssue({ code: "custom", path, message: `there is no profile "${profile}"; known: ${known.join(", ")}` });
  };
  check(settings.subagents.profile, ["subagents", "profile"]);
  for (const [index, { profile }] of settings.hooks.entries()) check(profile, ["hooks", String(index), "profile"]);
  for (const [id, { profile }] of Object.entries(settings.webhooks)) check(profile, ["webhooks", id, "profile"]);
  for (const [channel, accounts] of Object.entries(settings.channels)) {
    for (const [id, { profile }] of Object.entries(accounts)) check(profile, ["channels", channel, id, "profile"]);
  }
});
export type ParleySettings = z.infer<typeof ParleySettingsSchema>;
