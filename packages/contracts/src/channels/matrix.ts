// Matrix, through the client-server API of any homeserver. Limits: https://spec.matrix.org/latest/client-server-api/#size-limits and
// https://element-hq.github.io/synapse/latest/usage/configuration/config_documentation.html#rc_message
import { z } from "zod";
import { defineChannel, peopleSettings, secretVariable } from "./entry.ts";

export const matrixChannel = defineChannel({
  name: "matrix",
  title: "Matrix",
  settings: z.strictObject({
    ...peopleSettings,
    /** The URL of the client API, for example `https://matrix-client.matrix.org`. */
    homeserver: z.url({ protocol: /^https?$/ }),
    token_env: secretVariable,
  }),
  secrets: [{ setting: "token_env", purpose: "the access token of the agent's Matrix account", required: true }],
  questions: [
    // The rooms of step 5 are not marked as direct, so an invitation by an unlisted person is ignored.
    { setting: "owners", purpose: "your own Matrix id, such as @ann:example.org: the agent accepts your invitations" },
    {
      setting: "homeserver",
      purpose: "the URL of the homeserver's client API, for example https://matrix-client.matrix.org",
    },
  ],
  capabilities: {
    // An event has at most 65,536 bytes. An edit has the text four times (HTML and plain, for clients with and without edits), and a
    // UTF-16 unit has at most 3 bytes.
    text: { format: "html", maxLength: 5_000, lengthUnit: "utf16", lengthCountsMarkup: true },
    // The defaults of Synapse, for messages, edits and reactions together.
    rates: { account: { burst: 10, everyMs: 5_000 } },
    supportsIdempotentSend: true,
    typing: true,
    // The indicator is shown for 30 s.
    typingEveryMs: 25_000,
    files: true,
    actions: false,
    preview: { everyMs: 5_000 },
    acknowledgement: "👀",
    // Element keeps `/` for its own commands.
    commandPrefix: "!",
  },
  connection: "leased",
  exampleAddress: "matrix:main:!abc123:example.org",
  setUp: [
    "Create an account for the agent on a homeserver, for example in Element in a private browser window.",
    'Log in once to get an access token: `curl -X POST https://<homeserver>/_matrix/client/v3/login -d \'{"type": "m.login.password", "identifier": {"type": "m.id.user", "user": "<name>"}, "password": "<password>", "initial_device_display_name": "Parley"}\'`. The answer contains `access_token`: the secret for `token_env`. Use the token for nothing else, and do not log this session out.',
    "Find the URL of the homeserver's client API, for `homeserver`: `https://<domain>/.well-known/matrix/client` shows it as `base_url`. For matrix.org it is `https://matrix-client.matrix.org`.",
    "Your own id, `@name:server`, is for `owners`; list other people in `allow_from`, and rooms with several people as room ids in `groups`. The agent accepts invitations to rooms in `groups` and invitations of listed people. Element shows a room's id in *Room settings → Advanced → Internal room ID*; it begins with `!`.",
    "Create a room with end-to-end encryption turned off (in Element: *New room*, not *Start chat*, whose rooms are always encrypted) and invite the agent. It joins by itself and answers there.",
  ],
  permissions: [
    "To be invited to each room: the agent accepts invitations to rooms in `groups`, from people in `owners` and `allow_from`, and, if `dm_policy` admits new people, to direct rooms.",
    "To send messages in the room. Encrypted rooms are not supported: the agent says so once in such a room.",
  ],
});
export type MatrixAccount = z.infer<typeof matrixChannel.settings>;
