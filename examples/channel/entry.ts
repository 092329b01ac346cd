// The entry of the example: a chat server that posts messages to the gateway and takes answers by HTTP.
import { defineChannel, peopleSettings, secretVariable } from "@parley/contracts";
import { z } from "zod";

export const exampleChannel = defineChannel({
  name: "example",
  title: "Example chat",
  settings: z.strictObject({ ...peopleSettings, url: z.url(), secret_env: secretVariable }),
  secrets: [{ setting: "secret_env", purpose: "the secret that both sides send", required: true }],
  capabilities: {
    text: { format: "plain", maxLength: 500, lengthUnit: "code_points", lengthCountsMarkup: false },
    supportsIdempotentSend: true,
    typing: false,
    files: false,
    actions: false,
  },
  connection: "called",
  exampleAddress: "example:main:ann",
  setUp: ["Start the chat server with the gateway's address and a secret."],
  permissions: ["None."],
});
