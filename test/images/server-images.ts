// The servers of docker-compose.yml and its command line. Where the registry cannot be reached, substitutes for the servers' images are built from
// Debian's packages: the same programs, users, paths and start scripts, as far as docker-compose.yml uses them.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Engine } from "./engine.ts";

const suite = "trixie";
const packages = ["busybox", "haproxy", "nats-server", "postgresql", "redis-server"];
const debianImage = "parley-test/servers";
const substituteLabel = "parley.substitute";

/** The Dockerfiles of the substitutes by the repository of the image. */
const substitutes: Readonly<Record<string, string>> = {
  postgres: `RUN usermod --uid 999 postgres && install --directory --owner=999 /var/lib/postgresql \\
    && rm -rf /var/lib/postgresql/* /etc/postgresql
COPY postgres.sh /usr/local/bin/docker-entrypoint.sh
ENV PATH=/usr/lib/postgresql/17/bin:/usr/local/bin:/usr/bin:/bin
ENTRYPOINT ["bash", "/usr/local/bin/docker-entrypoint.sh"]
CMD []`,
  redis: `RUN install --directory --owner=999 /data && chmod 0755 /etc/redis && printf '#!/bin/sh\\nexec "$@"\\n' > /usr/local/bin/docker-entrypoint.sh \\
    && chmod 0755 /usr/local/bin/docker-entrypoint.sh
ENTRYPOINT ["docker-entrypoint.sh"]`,
  nats: `ENTRYPOINT ["nats-server"]`,
  haproxy: `USER haproxy
ENTRYPOINT ["haproxy", "-W", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]`,
};

/** As the start script of the image: a new data folder gets the superuser's password and the script that Compose mounts. */
const postgresScript = `set -e
export PGDATA=/var/lib/postgresql/data
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  initdb --username=postgres --pwfile="$POSTGRES_PASSWORD_FILE" --auth-host=scram-sha-256 $POSTGRES_INITDB_ARGS
  echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
  pg_ctl --wait start --options="-c listen_addresses=''"
  for file in /docker-entrypoint-initdb.d/*.sql; do psql --username=postgres --set=ON_ERROR_STOP=1 --file="$file"; done
  pg_ctl --wait --mode=fast stop
fi
exec postgres -c listen_addresses='*' "$@"
`;

/** Makes the images available under their names. Throws when one can neither be pulled nor built. */
export async function ensureServerImages(
  engine: Engine,
  images: readonly string[],
  folder: string,
  say: (line: string) => void,
): Promise<void> {
  for (const image of images) {
    const labels = await engine.docker("image", "inspect", "--format", "{{json .Config.Labels}}", image).then(
      (text) => text,
      () => undefined,
    );
    // A substitute is built again: what it consists of may have changed.
    if (labels !== undefined && !labels.includes(substituteLabel)) continue;
    const isPulled = await engine.docker("pull", "--quiet", image).then(
      () => true,
      () => false,
    );
    if (isPulled) continue;
    const repository = /^[^:]+/.exec(image)?.[0] ?? "";
    const lines = substitutes[repository];
    if (lines === undefined || engine.packages === undefined)
      throw new Error(`${image} cannot be pulled: load it into the engine and run this again`);
    say(`${image} cannot be pulled: building a substitute from Debian's packages`);
    await importDebian(engine, folder);
    const context = join(folder, "servers", repository);
    mkdirSync(context, { recursive: true });
    writeFileSync(join(context, "postgres.sh"), postgresScript);
    writeFileSync(join(context, "Dockerfile"), `FROM ${debianImage}\n${lines}\n`);
    await engine.docker(
      "build",
      "--network=none",
      "--quiet",
      `--label=${substituteLabel}=true`,
      "--tag",
      image,
      context,
    );
  }
}

async function importDebian({ docker, packages: programs = "" }: Engine, folder: string): Promise<void> {
  if ((await docker("image", "ls", "--quiet", debianImage)) !== "") return;
  const archive = join(folder, "servers.tar");
  if (!existsSync(archive)) {
    const include = `--include=${packages.join(",")}`;
    const line = ["--variant=minbase", include, suite, archive, "http://deb.debian.org/debian"];
    // The health checks of Compose use wget, which the official images have from busybox.
    const links = '--customize-hook=ln -s busybox "$1/usr/bin/wget"; ln -s busybox "$1/usr/bin/nc"';
    execFileSync(join(programs, "usr/bin/mmdebstrap"), [links, ...line], { stdio: ["ignore", "ignore", "pipe"] });
  }
  await docker("import", archive, debianImage);
}

/** Makes `docker compose` available to an engine of our own. Throws when it is missing and cannot be downloaded. */
export async function ensureCompose(engine: Engine, folder: string, say: (line: string) => void): Promise<void> {
  const works = () =>
    engine.docker("compose", "version").then(
      () => true,
      () => false,
    );
  if (await works()) return;
  if (engine.packages === undefined)
    throw new Error("the Docker client has no Compose plugin: install it and run this again");
  say(`downloading Compose of Debian ${suite}`);
  const [home, target] = [join(folder, "compose"), join(folder, "client/cli-plugins")];
  for (const part of ["lists/partial", "cache/archives/partial"]) mkdirSync(join(home, part), { recursive: true });
  mkdirSync(target, { recursive: true });
  writeFileSync(join(home, "status"), "");
  const key = "/usr/share/keyrings/debian-archive-keyring.gpg";
  writeFileSync(join(home, "sources.list"), `deb [signed-by=${key}] http://deb.debian.org/debian ${suite} main\n`);
  const settings = {
    "Dir::State": home,
    "Dir::State::status": join(home, "status"),
    "Dir::Cache": join(home, "cache"),
    "Dir::Etc::sourcelist": join(home, "sources.list"),
    "Dir::Etc::sourceparts": "/dev/null",
  };
  const options = Object.entries(settings).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
  for (const action of [["update"], ["download", "docker-compose"]])
    execFileSync("apt-get", [...options, ...action], { cwd: home, stdio: ["ignore", "ignore", "pipe"] });
  execFileSync(
    "sh",
    ["-c", 'dpkg -x docker-compose_*.deb root && cp root/usr/libexec/docker/cli-plugins/* "$1"', "sh", target],
    {
      cwd: home,
    },
  );
  if (!(await works())) throw new Error("the downloaded Compose does not run");
}
