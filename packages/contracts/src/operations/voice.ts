// Operations on voice: speech input of a conversation, and spoken answers.
import { z } from "zod";
import { TextAnswer } from "./fields.ts";
import { operation } from "./operation.ts";

const none = z.strictObject({});

export const voiceStart = operation({
  name: "voice.start",
  summary: "Start speech input of a conversation",
  role: "owner",
  input: z.strictObject({ source: z.string().max(1_000).default("microphone") }),
  output: TextAnswer,
  slash: [{ form: "/voice start", arguments: [{ field: "source", rest: true, optional: true }] }],
});

export const voiceEnd = operation({
  name: "voice.stop",
  summary: "Stop speech input of a conversation",
  role: "owner",
  input: none,
  output: TextAnswer,
  slash: [{ form: "/voice stop" }],
});

export const voiceStatus = operation({
  name: "voice.status",
  summary: "The state of speech input of a conversation",
  role: "user",
  input: none,
  output: TextAnswer,
  slash: [{ form: "/voice" }, { form: "/voice status" }],
});

export const voiceEvents = operation({
  name: "voice.events",
  summary: "The last events of speech input",
  role: "owner",
  input: z.strictObject({ count: z.coerce.number().int().min(1).default(20) }),
  output: TextAnswer,
  slash: [{ form: "/voice events", arguments: [{ field: "count", label: "number", optional: true }] }],
});

export const voiceDevices = operation({
  name: "voice.devices",
  summary: "The audio devices of the speech server",
  role: "owner",
  input: none,
  output: TextAnswer,
  slash: [{ form: "/voice devices" }],
});

export const voiceReplies = operation({
  name: "voice.replies",
  summary: "Show or switch spoken answers of a session",
  role: "user",
  input: z.strictObject({ on: z.boolean().optional() }),
  output: TextAnswer,
  slash: [
    { form: "/voice replies" },
    { form: "/voice replies status" },
    { form: "/voice replies on", set: { on: true }, direct: "owner" },
    { form: "/voice replies off", set: { on: false }, direct: "owner" },
  ],
});
