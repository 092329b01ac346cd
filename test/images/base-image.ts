// The base image of the Dockerfile. Where its registry cannot be reached, a stand-in of the same content is built: Debian from its packages,
// and this Node with npm.
import { execFileSync } from "node:child_process";
import { copyFileSync, cpSync, existsSync, mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Engine } from "./engine.ts";

/** The certificates of this machine, for a registry of packages behind a proxy. */
const certificates = "/etc/ssl/certs/ca-certificates.crt";

/** Makes the image available under its name; resolves with what it is. Throws when it can neither be pulled nor built. */
export async function ensureBaseImage(
  engine: Engine,
  image: string,
  folder: string,
  say: (line: string) => void,
): Promise<"present" | "pulled" | "stand-in"> {
  const { docker, packages } = engine;
  const has = (action: "inspect" | "pull") =>
    docker(...(action === "pull" ? ["pull", "--quiet", image] : ["image", "inspect", image])).then(
      () => true,
      () => false,
    );
  if (await has("inspect")) return "present";
  say(`pulling ${image}`);
  if (await has("pull")) return "pulled";
  if (packages === undefined) throw new Error(`${image} cannot be pulled: load it into the engine and run this again`);
  say(`${image} cannot be pulled: building a stand-in from Debian's packages`);
  const archive = join(folder, "debian.tar");
  if (!existsSync(archive)) {
    const program = join(packages, "usr/bin/mmdebstrap");
    const line = [
      "--variant=minbase",
      "--include=ca-certificates",
      "bookworm",
      archive,
      "http://deb.debian.org/debian",
    ];
    execFileSync(program, line, { stdio: ["ignore", "ignore", "pipe"] });
  }
  const path = "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  await docker("import", "--change", path, archive, "debian:bookworm-slim");
  const context = join(folder, "base");
  mkdirSync(context, { recursive: true });
  copyFileSync(process.execPath, join(context, "node"));
  const npm = dirname(dirname(realpathSync(execFileSync("which", ["npm"], { encoding: "utf8" }).trim())));
  cpSync(npm, join(context, "npm"), { recursive: true });
  copyFileSync(certificates, join(context, "certificates"));
  writeFileSync(join(context, "Dockerfile"), dockerfile);
  await docker("build", "--network", "host", "--quiet", "--tag", image, context);
  return "stand-in";
}

const dockerfile = `FROM debian:bookworm-slim
COPY certificates ${certificates}
ENV NODE_EXTRA_CA_CERTS=${certificates}
COPY node /usr/local/bin/node
COPY npm /usr/local/lib/node_modules/npm
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm \\
    && ln -s ../lib/node_modules/npm/bin/npx-cli.js /usr/local/bin/npx
`;
