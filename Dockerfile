# One target for each service:
#   docker build --target store --tag parley/store:0.1.0 .
# docker-bake.json builds all of them for several platforms.
# Targets: store, migrate, agent-core, tool-runner, channel-gateway.
# `build` compiles everything once; a target contains only the output of one service and its production dependencies. The service runs as a
# bundle; its other programs, such as the migration, run module by module.
ARG NODE_IMAGE=node:24-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /parley
ENV CI=true
# The downloads change only with the lock file. For a private registry: --secret id=npmrc,src=$HOME/.npmrc
COPY package.json pnpm-lock.yaml pnpm-workspace.yaml ./
COPY patches ./patches
RUN --mount=type=secret,id=npmrc,target=/root/.npmrc \
    npm install --global "pnpm@$(node --print 'require("./package.json").config.pnpm')" && pnpm fetch
COPY . .
# No service needs every patched package.
RUN --mount=type=secret,id=npmrc,target=/root/.npmrc \
    pnpm install --frozen-lockfile --prefer-offline \
    && node_modules/.bin/tsc -b tsconfig.build.json \
    && node packages/console/node_modules/vite/bin/vite.js build packages/console \
    && node infra/docker/bundle.ts \
    && for service in store agent-core tool-runner channel-gateway; do \
         pnpm --config.allow-unused-patches=true deploy --prod --legacy --prefer-offline \
           --filter "@parley/$service" "/out/$service" || exit 1; \
       done \
    # Node never loads these from packages.
    && find /out -path '*/node_modules/*' -type f \( -name '*.ts' -o -name '*.mts' -o -name '*.cts' -o -name '*.map' \) -delete \
    # Records of the package manager, with the time of the build.
    && rm -f /out/*/node_modules/.modules.yaml /out/*/node_modules/.pnpm-workspace-state*.json

FROM ${NODE_IMAGE} AS runtime
LABEL org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.vendor="Parley"
ENV NODE_ENV=production \
    MALLOC_ARENA_MAX=2 \
    MALLOC_MMAP_THRESHOLD_=131072 \
    PARLEY_HEALTH_HOST=0.0.0.0 \
    PARLEY_HEALTH_PORT=8080
RUN groupadd --gid 10001 parley \
    && useradd --uid 10001 --gid parley --home-dir /nonexistent --no-create-home --shell /usr/sbin/nologin parley \
    # The kernel hides the environment of a process whose program file its user cannot read. Docker gives the health check the secrets of
    # the container, where the commands of `exec` run as the same user.
    && install --mode=0711 /bin/bash /usr/local/bin/health-shell \
    # Nothing is installed at runtime: package managers would only help an attacker.
    && rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack \
         /usr/local/bin/yarn /usr/local/bin/yarnpkg /opt/yarn-*
WORKDIR /app
USER 10001:10001
# The services find a preset by name in this folder.
COPY presets ./presets
# Node is process 1 and handles SIGTERM itself: it drains and exits with 0. It would size the young generation by the machine's memory.
CMD ["node", "--max-semi-space-size=4", "bundle/main.js"]
# Uses bash: starting Node every five seconds in every container would cost much more.
HEALTHCHECK --interval=5s --timeout=4s --start-period=60s --retries=3 \
  CMD ["health-shell", "-c", "exec 3<>\"/dev/tcp/127.0.0.1/$PARLEY_HEALTH_PORT\" && printf 'GET /readyz HTTP/1.0\\r\\n\\r\\n' >&3 && read -r -t 3 _ status _ <&3 && [ \"$status\" = 200 ]"]
EXPOSE 8080

FROM runtime AS store
USER 0
# For PARLEY_BLOB_DIR: a volume inherits the owner of this folder.
RUN install --directory --owner=10001 --group=10001 /blobs
USER 10001:10001
COPY --from=build /out/store ./

# The same files as the store: applies the missing migrations and exits.
FROM store AS migrate
HEALTHCHECK NONE
# Waits while PostgreSQL cannot be reached; any other failure ends it.
CMD ["node", "dist/migrate.js", "--wait"]

FROM runtime AS agent-core
COPY --from=build /out/agent-core ./

FROM runtime AS channel-gateway
ENV PARLEY_HTTP_HOST=0.0.0.0 \
    PARLEY_HTTP_PORT=8787
EXPOSE 8787
COPY --from=build /out/channel-gateway ./

# The commands of `exec` run here. tini reaps orphaned processes; bubblewrap is for clusters that allow user namespaces
# (PARLEY_EXEC_ISOLATION=auto). Elsewhere the container is the sandbox, and the service reports that.
FROM runtime AS tool-runner
USER 0
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap tini \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* \
    && install --directory --owner=10001 --group=10001 /workspace /checkpoints \
    && install --directory --owner=10001 --group=10001 --mode=0700 /.workspace-mcp /state \
    # Like health-shell: the first process has the container's secrets in its environment. The service hides itself.
    && chmod 0711 /usr/bin/tini
USER 10001:10001
ENV PARLEY_WORKSPACE=/workspace \
    PARLEY_CHECKPOINTS=/checkpoints \
    PARLEY_STATE=/state \
    PARLEY_EXEC_ISOLATION=container
ENTRYPOINT ["/usr/bin/tini", "--"]
# Without the flag a command could start the debugger of the service by a signal, and read its memory.
CMD ["node", "--max-semi-space-size=4", "--disable-sigusr1", "bundle/main.js"]
COPY --from=build /out/tool-runner ./
