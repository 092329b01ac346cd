// A Slack adapter with its platform and a host, for tests.
import fastify from "fastify";
import { slackChannel, type SlackAccount } from "@parley/contracts";
import { startSlackPeer, type SlackPeer, type SlackPeerOptions } from "@parley/testing";
import type { ChannelAdapter } from "../../src/channels/channel.ts";
import { createSlack } from "../../src/channels/slack/index.ts";
import { TestHost } from "./channel-host.ts";

export interface ServedSlack extends AsyncDisposable {
  peer: SlackPeer;
  host: TestHost;
  adapter: ChannelAdapter;
  /** The address of the Events API; empty in socket mode. */
  url: string;
}

export function slackAdapter(
  peer: SlackPeer,
  more: Partial<SlackAccount> = {},
  token = peer.tokens.bot,
): ChannelAdapter {
  const settings = slackChannel.settings.parse({ token_env: "PARLEY_CHANNEL_SLACK", api_root: peer.url, ...more });
  return createSlack("main", settings, { token, appToken: peer.tokens.app, signingSecret: peer.signingSecret });
}

/** Serves an account in socket mode, or by the Events API with `mode: "events"`. */
export async function serveSlack(
  more: Partial<SlackAccount> = {},
  options: SlackPeerOptions = { postRate: { burst: 1_000, everyMs: 1 } },
): Promise<ServedSlack> {
  const peer = await startSlackPeer(options);
  const adapter = slackAdapter(peer, more);
  const host = new TestHost();
  if (adapter.routes !== undefined) {
    const app = fastify({ forceCloseConnections: true });
    app.removeAllContentTypeParsers();
    app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
    adapter.routes(app, host);
    const root = await app.listen({ port: 0, host: "127.0.0.1" });
    const url = `${root}/channels/slack/main/events`;
    peer.setRequestUrl(url);
    const close = async () => {
      await app.close();
      await peer.close();
    };
    return { peer, host, adapter, url, [Symbol.asyncDispose]: close };
  }
  const { lease, lose } = host.lease();
  const ended = adapter.connect?.(host, lease);
  await peer.untilConnected();
  const close = async () => {
    lose();
    await ended;
    await peer.close();
  };
  return { peer, host, adapter, url: "", [Symbol.asyncDispose]: close };
}
