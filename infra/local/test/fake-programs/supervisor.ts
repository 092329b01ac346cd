// A supervisor process that a test kills: it starts the fakes on the given home and prints their processes.

import { sharedCacheDir } from "../../src/servers/locate.ts";
import { startLocalCluster } from "../../src/local-cluster.ts";
import { fakePrograms } from "./programs.ts";

const [home = ""] = process.argv.slice(2);
const cluster = await startLocalCluster({ home, serversDir: sharedCacheDir, programs: fakePrograms });
const { postgres, redis, nats } = cluster.servers;
const servers = [postgres, redis, nats].map((kept) => kept?.current().pid);
const services = cluster.replicas().map((replica) => replica.process?.pid);
process.stdout.write(`${JSON.stringify([...servers, ...services])}\n`);
