// The Matrix channel: one account on a homeserver. One replica receives under the lease; every replica sends. This file assembles the
// parts and depends neither on the store nor on access rules.
import { matrixChannel, type MatrixAccount } from "@parley/contracts";
import { AccountRejectedError, type ChannelAdapter } from "../channel.ts";
import { AccountSettingsError } from "../settings-check.ts";
import { createApi, resultOrNull } from "./api.ts";
import { downloadMedia } from "./media.ts";
import { Identity } from "./schema.ts";
import { messageOperations, sendPart, setTyping } from "./send.ts";
import { receive } from "./sync.ts";

/** Longer than the interval at which the host repeats the indicator. */
const typingShownMs = 30_000;

/** Throws an AccountSettingsError for names that are not ids: an alias or a display name can be taken by somebody else. */
export function createMatrix(account: string, settings: MatrixAccount, token: string): ChannelAdapter {
  const refuse = (problem: string): never => {
    throw new AccountSettingsError("matrix", account, problem);
  };
  const room = settings.groups.find((group) => group !== "*" && !/^![^\s/]+$/.test(group));
  if (room !== undefined) refuse(`"${room}" in groups is not a room id, which begins with "!".`);
  const person = [...settings.owners, ...settings.allow_from].find((id) => !/^@[^\s:]*:\S+$/.test(id));
  if (person !== undefined) refuse(`"${person}" is not a Matrix user id, which has the form "@name:server".`);
  if (!/^[\x21-\x7e]+$/.test(token)) refuse(`the value of ${settings.token_env} is not an access token.`);
  const api = createApi(settings.homeserver, token);
  let known: string | null = null;
  /** The user id that the token belongs to. Rejects like `resultOrNull`. */
  const identify = async (signal: AbortSignal): Promise<string> => {
    if (known !== null) return known;
    const answer = await api({ method: "GET", path: "/client/v3/account/whoami", result: Identity, signal });
    const identity = await resultOrNull(answer, signal);
    if (identity === null) throw new AccountRejectedError("the homeserver has no Matrix client API at this URL");
    known = identity.user_id;
    return known;
  };

  return {
    channel: matrixChannel.name,
    account,
    capabilities: matrixChannel.capabilities,
    ownedConnection: true,
    sendsWithoutConnection: true,
    connect(host, lease) {
      known = null;
      return receive({ api, account, settings, identify }, host, lease);
    },
    fetchFile: (handle, maxBytes, signal) => downloadMedia(api, handle, maxBytes, signal),
    async check(signal) {
      known = null;
      return { as: await identify(signal) };
    },
    send: (part, signal) => sendPart(api, part, signal),
    ...messageOperations(api, identify),
    typing: async (address) =>
      setTyping(api, await identify(AbortSignal.timeout(typingShownMs)), address, typingShownMs),
    stopTyping: async (address) => setTyping(api, await identify(AbortSignal.timeout(typingShownMs)), address, 0),
  };
}
