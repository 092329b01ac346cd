// A WhatsApp account with its fake, and its webhook as the gateway serves it.
import fastify, { type FastifyInstance } from "fastify";
import { whatsappChannel, type WhatsAppAccount } from "@parley/contracts";
import { startWhatsAppPeer, type WhatsAppPeer } from "@parley/testing";
import type { ChannelAdapter } from "../../src/channels/channel.ts";
import { createWhatsApp } from "../../src/channels/whatsapp/index.ts";
import { TestHost } from "./channel-host.ts";

export const verifyToken = "verify-me";

export function whatsappAdapter(peer: WhatsAppPeer, settings: Partial<WhatsAppAccount> = {}): ChannelAdapter {
  const parsed = whatsappChannel.settings.parse({
    token_env: "PARLEY_CHANNEL_TOKEN",
    app_secret_env: "PARLEY_CHANNEL_SECRET",
    verify_token_env: "PARLEY_CHANNEL_VERIFY",
    phone_number_id: peer.phoneNumberId,
    api_root: peer.url,
    ...settings,
  });
  return createWhatsApp("main", parsed, { token: peer.token, appSecret: peer.appSecret, verifyToken });
}

export interface ServedWhatsApp extends AsyncDisposable {
  peer: WhatsAppPeer;
  host: TestHost;
  adapter: ChannelAdapter;
  app: FastifyInstance;
  url: string;
}

/** An account whose webhook is verified and subscribed. */
export async function serveWhatsApp(settings: Partial<WhatsAppAccount> = {}): Promise<ServedWhatsApp> {
  const peer = await startWhatsAppPeer();
  const host = new TestHost();
  const adapter = whatsappAdapter(peer, settings);
  const app = fastify({ forceCloseConnections: true });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
  adapter.routes?.(app, host);
  const root = await app.listen({ port: 0, host: "127.0.0.1" });
  const url = `${root}/channels/whatsapp/main/webhook`;
  await peer.subscribe(url, verifyToken);
  return {
    peer,
    host,
    adapter,
    app,
    url,
    [Symbol.asyncDispose]: async () => {
      await peer.close();
      await app.close();
    },
  };
}
