// Operations on voice: speech input of a conversation, and spoken answers.
import { z } from "zod";
import { slashOperation } from "./operation.ts";

const none = z.strictObject({});

export const voiceStart = slashOperation({
  name: "voice.start",
  role: "owner",
  input: z.strictObject({ source: z.string().max(1_000).default("microphone") }),
  slash: [{ form: "/voice start", arguments: [{ field: "source", rest: true, optional: true }] }],
});

export const voiceEnd = slashOperation({
  name: "voice.stop",
  role: "owner",
  input: none,
  slash: [{ form: "/voice stop" }],
});

export const voiceStatus = slashOperation({
  name: "voice.status",
  role: "user",
  input: none,
  slash: [{ form: "/voice" }, { form: "/voice status" }],
});

export const voiceEvents = slashOperation({
  name: "voice.events",
  role: "owner",
  input: z.strictObject({ count: z.coerce.number().int().min(1).default(20) }),
  slash: [{ form: "/voice events", arguments: [{ field: "count", label: "number", optional: true }] }],
});

export const voiceDevices = slashOperation({
  name: "voice.devices",
  role: "owner",
  input: none,
  slash: [{ form: "/voice devices" }],
});

export const voiceReplies = slashOperation({
  name: "voice.replies",
  role: "user",
  input: z.strictObject({ on: z.boolean().optional() }),
  slash: [
    { form: "/voice replies" },
    { form: "/voice replies status" },
    { form: "/voice replies on", set: { on: true }, direct: "owner" },
    { form: "/voice replies off", set: { on: false }, direct: "owner" },
  ],
});
