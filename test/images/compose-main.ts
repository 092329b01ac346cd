// The second part of npm run test:images, in the network namespace of the engine: starts docker-compose.yml with the images that were built and checks
// it from inside its containers. With --scenes, plays those of test/chaos/load under a constant load instead.
import { parseArgs } from "node:util";
import { Cleanup } from "@parley/testing";
import { describeScene, runLoadScenes } from "../chaos/load/run.ts";
import { chooseScenes } from "../chaos/load/scenes.ts";
import { checkConnections, checkContainers, checkEntrance, checkInternet } from "./compose-checks.ts";
import { startCompose } from "./compose-cluster.ts";
import { startContainerCluster } from "./container-target.ts";
import { connectEngine } from "./engine.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    scenes: { type: "boolean", default: false },
    compose: { type: "boolean" },
    rate: { type: "string", default: "20" },
    "duration-seconds": { type: "string", default: "300" },
  },
});
const say = (line: string): void => console.error(line);
const docker = connectEngine({});
if (values.scenes) {
  const problems = await runLoadScenes({
    open: (cleanup) => startContainerCluster(cleanup, docker),
    scenes: chooseScenes(positionals),
    rate: Number(values.rate),
    durationSeconds: Number(values["duration-seconds"]),
    report: (result) => console.log(describeScene(result)),
    skip: ({ name }, reason) => console.log(`${name}: not played: ${reason}`),
  });
  for (const problem of problems) console.log(problem);
  process.exitCode = problems.length === 0 ? 0 : 1;
} else {
  await using cleanup = new Cleanup();
  const begin = performance.now();
  const cluster = await startCompose(cleanup, docker);
  say(`docker-compose.yml: healthy after ${Math.round((performance.now() - begin) / 1_000)} s`);
  await checkEntrance(cluster);
  await checkContainers(cluster);
  say(
    `${(await cluster.containers()).length} containers: no root, capability, writable system or secret in an environment; limits`,
  );
  say(`${await checkConnections(cluster)} connections tried from inside: only the declared ones are possible`);
  await checkInternet(cluster);
  say("infra/docker/web.yml: the tool-runner has a way to the internet, and commands are refused");
}
