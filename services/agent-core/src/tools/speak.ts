// `speak`: says something aloud: a text made into sound and sent as a voice message. Offered where somebody is configured who speaks.
import { WireError } from "@parley/contracts";
import { z } from "zod";
import { soundOf } from "../speech/sound.ts";
import { SynthesisError, type Synthesizer } from "../speech/synthesizer.ts";
import { addressText } from "../turn/heading.ts";
import { addressNamed, currentAddresses } from "./address.ts";
import { localTool, type LocalTool } from "./local-tool.ts";
import { expiresInMs } from "./message.ts";

export function speakTool(synthesizer: Synthesizer): LocalTool {
  const { max_characters: max, timeout_seconds: seconds } = synthesizer.settings;
  return localTool({
    name: "speak",
    aliases: ["text_to_speech"],
    summary: "Send a voice message.",
    description: `Say something aloud: the text is made into sound and sent as a voice message to the conversation this turn answers, or to another one with \`to\`. Use it when you are asked to speak; only the sound is sent, not the text. Plain prose of at most ${max} characters, in the language it shall be spoken in.`,
    input: z.object({
      text: z.string().min(1).describe("What to say."),
      voice: z
        .string()
        .max(100)
        .optional()
        .describe("Another voice than the usual one, as the speech service names it."),
      to: z.string().optional().describe("channel:account:conversation; left out: the current conversation."),
    }),
    examples: [{ text: "Good morning. It is sunny today." }, { text: "Dinner is ready.", to: "telegram:main:4711" }],
    // Made again after a crash it is still sent once: it goes out with the commit of the call.
    class: "idempotent",
    readOnly: false,
    risk: "low",
    effects: ["sends_out"],
    async run({ text, voice, to }, context) {
      const { bus, turn, log } = context;
      if (text.length > max)
        return failed(`\`text\` has ${text.length} characters; at most ${max} are spoken. Shorten it.`);
      const named = to === undefined ? undefined : addressNamed(to, context);
      if (typeof named === "string") return failed(`\`to\` is ${named}.`);
      const addresses = named === undefined ? currentAddresses(turn) : [named];
      try {
        const sound = await soundOf(bus, synthesizer, {
          text,
          voice,
          signal: AbortSignal.timeout(seconds * 1_000 + 5_000),
        });
        if (sound === null) return failed("`text` holds nothing that could be said.");
        const where = addresses.length === 0 ? "whoever watches this session" : addresses.map(addressText).join(", ");
        return {
          status: "done",
          content: `voice message sent to ${where}`,
          outgoing: addresses.map((each) => ({ address: each, text: "", attachments: [sound], expiresInMs })),
          sent: [sound],
        };
      } catch (error) {
        if (!(error instanceof SynthesisError) && !WireError.is(error, "TOO_LARGE", "INVALID_INPUT")) throw error;
        log.warn({ err: error }, "speak failed");
        return failed(`${error.message}. Write it instead.`);
      }
    },
  });
}

function failed(why: string) {
  return { status: "failed" as const, content: `Nothing was said: ${why}` };
}
