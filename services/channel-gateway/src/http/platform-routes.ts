// Webhook routes of platforms. Each account has a router of its own, because accounts are added and removed while the gateway runs; its
// adapter authenticates the sender over the raw body.
import fastify, { type FastifyInstance } from "fastify";
import type { HostedAccount } from "../accounts/hosted-account.ts";
import type { HttpDeps } from "./deps.ts";
import { HttpError, unavailable } from "./errors.ts";

/** `prepare` sets the error responses of a router. */
export function platformRoutes(
  app: FastifyInstance,
  { accounts, directory }: Pick<HttpDeps, "accounts" | "directory">,
  prepare: (router: FastifyInstance) => void,
): void {
  const routers = new WeakMap<HostedAccount, Promise<FastifyInstance>>();
  const routerOf = (hosted: HostedAccount): Promise<FastifyInstance> => {
    const known = routers.get(hosted) ?? createRouter(hosted, prepare);
    routers.set(hosted, known);
    return known;
  };
  void app.register(async (scope) => {
    // The router of the account reads the body.
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", (_request, _payload, done) => done(null));
    scope.all<{ Params: { channel: string; account: string } }>(
      "/channels/:channel/:account/*",
      { config: { open: true } },
      async (request, reply) => {
        const { channel, account } = request.params;
        const name = `${channel}:${account}`;
        const hosted = accounts.find(name);
        if (hosted?.adapter.routes === undefined) {
          const absence = directory.absence({ channel, account });
          // The reason names environment variables, so it is not shown to callers without a token.
          if (absence === "disabled") throw new HttpError(503, "account_disabled", `the account ${name} is disabled`);
          if (absence === "not_read") throw unavailable("the accounts have not been read from the store yet");
          return reply.callNotFound();
        }
        const router = await routerOf(hosted);
        reply.hijack();
        router.routing(request.raw, reply.raw);
        return reply;
      },
    );
  });
}

async function createRouter(
  { adapter, host }: HostedAccount,
  prepare: (router: FastifyInstance) => void,
): Promise<FastifyInstance> {
  const prefix = `/channels/${adapter.channel}/${adapter.account}`;
  const router = fastify({ exposeHeadRoutes: false, return503OnClosing: false, logger: false });
  prepare(router);
  router.removeAllContentTypeParsers();
  router.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
  router.addHook("onRoute", ({ url }) => {
    if (!url.startsWith(prefix)) throw new Error(`${url} is not below ${prefix}`);
  });
  adapter.routes?.(router, host);
  await router.ready();
  return router;
}
