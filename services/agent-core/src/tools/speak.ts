// `speak`: synthesizes a text and sends it as a voice message. Available only if a speech service is configured.
import { exampleAddress, WireError } from "@parley/contracts";
import { z } from "zod";
import { audioFormat } from "../voice/audio-format.ts";
import { SynthesisError, type Synthesizer } from "../voice/synthesizer.ts";
import { formatAddress } from "../prompt/message-header.ts";
import { parseAddress, turnAddresses } from "./reply-address.ts";
import { localTool, type LocalTool } from "./local-tool.ts";
import { textExpiryMs } from "./message.ts";

export function speakTool(synthesizer: Synthesizer): LocalTool {
  const { max_characters: max, timeout_seconds: seconds } = synthesizer.settings;
  return localTool({
    name: "speak",
    aliases: ["text_to_speech"],
    summary: "Send a voice message.",
    description: `Convert text to speech and send it as a voice message to the conversation that this turn answers, or to another one with \`to\`. Use it when you are asked to speak. Only the audio is sent, not the text. The text must be plain prose of at most ${max} characters, in the language to be spoken.`,
    input: z.object({
      text: z.string().min(1).describe("The text to speak."),
      voice: z
        .string()
        .max(100)
        .optional()
        .describe("Name of a voice of the speech service, instead of the default one."),
      to: z.string().optional().describe("channel:account:conversation. Default: the current conversation."),
    }),
    examples: [{ text: "Good morning. It is sunny today." }, { text: "Dinner is ready.", to: exampleAddress }],
    // A repeated run after a crash synthesizes again but sends once: the outbox row is committed with the call.
    class: "idempotent",
    readOnly: false,
    risk: "low",
    effects: ["sends_out"],
    async run({ text, voice, to }, context) {
      const { bus, turn, log } = context;
      if (text.length > max) return failed(`\`text\` has ${text.length} characters; the limit is ${max}. Shorten it.`);
      const named = to === undefined ? undefined : await parseAddress(to, context);
      if (typeof named === "string") return failed(`\`to\` is ${named}.`);
      const addresses = named === undefined ? turnAddresses(turn) : [named];
      try {
        const sound = await audioFormat(bus, synthesizer, {
          text,
          voice,
          signal: AbortSignal.timeout(seconds * 1_000 + 5_000),
        });
        if (sound === null) return failed("`text` contains nothing that can be spoken.");
        const where =
          addresses.length === 0 ? "the clients that follow this session" : addresses.map(formatAddress).join(", ");
        return {
          status: "done",
          content: `voice message sent to ${where}`,
          outgoing: addresses.map((each) => ({
            address: each,
            text: "",
            attachments: [sound],
            expiresInMs: textExpiryMs,
          })),
          sent: [sound],
        };
      } catch (error) {
        if (!(error instanceof SynthesisError) && !WireError.is(error, "TOO_LARGE", "INVALID_INPUT")) throw error;
        log.warn({ err: error }, "voice message failed");
        return failed(`${error.message}. Send the text in writing instead.`);
      }
    },
  });
}

function failed(why: string) {
  return { status: "failed" as const, content: `Not sent: ${why}` };
}
