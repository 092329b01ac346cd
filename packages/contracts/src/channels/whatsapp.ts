// WhatsApp, through Meta's Cloud API for businesses. Limits: https://developers.facebook.com/docs/whatsapp/cloud-api
import { z } from "zod";
import { defineChannel, peopleSettings, secretVariable } from "./entry.ts";

export const whatsappChannel = defineChannel({
  name: "whatsapp",
  title: "WhatsApp",
  settings: z.strictObject({
    ...peopleSettings,
    /** Contains the access token of a system user. */
    token_env: secretVariable,
    /** Contains the app secret, with which Meta signs deliveries. */
    app_secret_env: secretVariable,
    /** Contains the text that Meta repeats when it verifies the webhook. */
    verify_token_env: secretVariable,
    /** The id of the business phone number, not the number itself. */
    phone_number_id: z.string().regex(/^\d{5,20}$/, "must be the id of the phone number: digits only"),
    /** The approved template for answers after the 24-hour window has ended. Omitted: such an answer is not sent. */
    template: z
      .string()
      .regex(/^[a-z0-9_]{1,512}$/, "must be the name of a template: small letters, digits and _")
      .optional(),
    /** The language of the template, as in WhatsApp Manager. */
    template_language: z.string().default("en_US"),
    /** The template has one body parameter, which gets the text. False: it has none and only asks the person to write again. */
    template_has_text: z.boolean().default(true),
    api_root: z.url().default("https://graph.facebook.com"),
    api_version: z
      .string()
      .regex(/^v\d+\.\d$/, "must be a version such as v24.0")
      .default("v24.0"),
  }),
  secrets: [
    {
      setting: "token_env",
      purpose: "the access token of a system user with the permission whatsapp_business_messaging",
      required: true,
    },
    { setting: "app_secret_env", purpose: "the app secret, with which Meta signs deliveries", required: true },
    {
      setting: "verify_token_env",
      purpose: "a random text that Meta repeats when it verifies the webhook",
      required: true,
    },
  ],
  questions: [
    {
      setting: "phone_number_id",
      purpose: "the phone number ID from the page API Setup: digits, not the phone number",
    },
  ],
  capabilities: {
    text: { format: "single_asterisk", maxLength: 4_096, lengthUnit: "utf16", lengthCountsMarkup: true },
    // 80 messages a second for a number; in a conversation one every 6 s, with bursts that the platform lends.
    rates: {
      account: { burst: 40, everyMs: 13 },
      conversations: [{ pattern: "", burst: 20, everyMs: 6_000 }],
    },
    supportsIdempotentSend: false,
    typing: true,
    // The indicator ends after 25 s.
    typingEveryMs: 20_000,
    // An answer with a file is an upload and a message.
    sendTimeoutMs: 15_000,
    files: true,
    actions: true,
    acknowledgement: "👀",
  },
  connection: "called",
  contactIdIsConversationId: true,
  exampleAddress: "whatsapp:main:491700000042",
  setUp: [
    "On developers.facebook.com create an app of the type *Business*, and add the product *WhatsApp* to it. It comes with a test number.",
    "Under *WhatsApp > API Setup* copy the *Phone number ID* to `phone_number_id`. It is not the phone number.",
    "In the business settings create a *system user*, assign the app and the WhatsApp account to it, and generate a token with `whatsapp_business_messaging`. It is the secret for `token_env`. The token on the page *API Setup* would work for 24 hours only.",
    "Under *App settings > Basic* copy the *App secret*: the secret for `app_secret_env`.",
    "Choose a random text, for example from `openssl rand -hex 16`: the secret for `verify_token_env`. You need it again in step 7.",
    "Make the gateway reachable by HTTPS under a public name, start Parley with that name in `PARLEY_ALLOWED_HOSTS`, and add the account.",
    "Under *WhatsApp > Configuration* enter `https://<host>/channels/whatsapp/<account>/webhook` as callback URL and the random text as verify token, press *Verify and save*, and subscribe to the field `messages`.",
    "To admit people without a pairing code, list their numbers in `owners` or `allow_from`, with country code and without `+`: `491700000042`.",
    "For answers later than 24 hours after a person's last message: create a template in WhatsApp Manager with one body parameter, for example *Parley: {{1}}*, wait for its approval, and set `template` to its name.",
  ],
  permissions: [
    "The system user: `whatsapp_business_messaging` for the app and the WhatsApp account.",
    "The app: subscribed to the field `messages` of the WhatsApp account, and in live mode for people other than its testers.",
  ],
});
export type WhatsAppAccount = z.infer<typeof whatsappChannel.settings>;
