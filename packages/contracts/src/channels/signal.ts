// Signal, through a signal-cli daemon (https://github.com/AsamK/signal-cli): one daemon per number, JSON-RPC and events over HTTP.
import { z } from "zod";
import { defineChannel, peopleSettings } from "./entry.ts";

export const signalChannel = defineChannel({
  name: "signal",
  title: "Signal",
  settings: z
    .strictObject({
      ...peopleSettings,
      /** The account's phone number in international format. */
      number: z.string().regex(/^\+[1-9]\d{4,14}$/, "must be a phone number such as +4915112345678"),
      /** The URL of the daemon. It requires no password: anyone who can connect to it can read and send messages as this number. */
      daemon_url: z.url({ protocol: /^https?$/ }).default("http://127.0.0.1:8080"),
      /** The gateway starts the daemon and stops it when the gateway stops. */
      start_daemon: z.boolean().default(false),
      /** The program that `start_daemon` runs. */
      command: z.string().min(1).default("signal-cli"),
      /** The folder with the account's keys; required for `start_daemon`. Every replica that may start the daemon needs the same folder. */
      data_dir: z.string().min(1).optional(),
    })
    .refine((account) => !account.start_daemon || account.data_dir !== undefined, {
      message: "start_daemon = true requires data_dir",
      path: ["data_dir"],
    }),
  // The daemon stores the keys of the account.
  secrets: [],
  questions: [
    { setting: "number", purpose: "the agent's phone number in international format, such as +4915112345678" },
  ],
  capabilities: {
    // A limit of Parley. Clients show up to 64 KiB: signal-cli sends a text of more than 2,000 bytes as an attachment, which they display
    // like other text.
    text: { format: "ranges", maxLength: 4_000, lengthUnit: "utf16", lengthCountsMarkup: false },
    // Signal-Server allows 60 messages from one sender to one recipient, then one per second. The account may also be used on a phone, so
    // the gateway uses only half of the burst.
    rates: { conversations: [{ pattern: "", burst: 30, everyMs: 1_000 }] },
    supportsIdempotentSend: false,
    typing: true,
    // Clients hide the indicator after 15 s.
    typingEveryMs: 8_000,
    // A message to a group is encrypted and sent once per member.
    sendTimeoutMs: 20_000,
    files: true,
    actions: false,
    acknowledgement: "👀",
  },
  connection: "leased",
  contactIdIsConversationId: true,
  exampleAddress: "signal:main:8f6b3c1e-5a0d-4c0a-9d57-0e5f6a7b8c9d",
  setUp: [
    "Install [signal-cli](https://github.com/AsamK/signal-cli) 0.13 or newer, which needs a Java runtime 21 or newer. Use a separate number for the agent, not your own.",
    "Register the number: `signal-cli --config DIR -a +49… register`, then `signal-cli --config DIR -a +49… verify CODE` with the code of the text message (for a landline `register --voice`). If it answers that a captcha is required, solve the one at https://signalcaptchas.org/registration/generate.html, copy the link address of *Open Signal* and register again with `register --captcha ADDRESS`. Or link it to a phone that already has the number: `signal-cli --config DIR link -n Parley` prints a URI; show it as a QR code and scan it in Signal under *Settings → Linked devices*.",
    "Give the account a name, so that people can see who writes: `signal-cli --config DIR -a +49… updateProfile --given-name Parley`.",
    'Either let the gateway run the daemon: `start_daemon = true`, `data_dir = "DIR"`. Or start it yourself, on the loopback interface only: `signal-cli --config DIR -a +49… daemon --http 127.0.0.1:8080 --receive-mode=manual`, and set `daemon_url` if the address differs.',
    "Write to the number from your own phone. The answer contains a pairing code; `npx parley pairing approve CODE --role owner` makes you the owner. `owners` and `allow_from` take account ids (UUIDs), which `npx parley people list` shows of everybody who has written: a phone number can be reassigned to somebody else, so they accept no phone numbers.",
    "For a group: add the number to it and mention it there. `npx parley channels logs signal:main` then shows the id of the group, for `groups`. In a group, mention the agent or reply to it.",
  ],
  permissions: [
    "In a group: to be a member. In a group where only administrators may send messages: to be an administrator.",
  ],
});
export type SignalAccount = z.infer<typeof signalChannel.settings>;
