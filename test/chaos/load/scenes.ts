// The scenes: what happens to a cluster while the load continues. They know nothing of processes, containers or pods.
import { setTimeout as delay } from "node:timers/promises";
import { services, type ServiceName } from "@parley/contracts";

/** The servers that a scene restarts. */
const servers = ["postgres", "redis", "nats"] as const;
type ServerName = (typeof servers)[number];

/** A running cluster, however it runs. Each method resolves when the cluster is complete again. */
export interface SceneTarget {
  /** Drains and replaces the replicas of a service, one after the other. */
  rollOut(service: ServiceName): Promise<void>;
  /** Ends the replicas of a service without a drain, one after the other. */
  kill(service: ServiceName): Promise<void>;
  /** Separates the replicas of a service from the bus for a time, one after the other. Undefined: the target cannot do it. */
  cut?: (service: ServiceName, forMs: number) => Promise<void>;
  /** Removes the replicas of a service as the drain of their node does, one after the other. Undefined: the target has no nodes. */
  evict?: (service: ServiceName) => Promise<void>;
  restartServer(server: ServerName): Promise<void>;
  scale(service: ServiceName, count: number): Promise<void>;
}

export interface LoadScene {
  name: string;
  /** What not every target can do. */
  needs?: "cut" | "evict";
  /** One round; a scene repeats it until its time is up. */
  run(target: SceneTarget): Promise<void>;
}

const cutMs = 10_000;
/** Between two changes, so that their effects can be told apart. */
const pauseMs = 2_000;

const each = (name: string, act: (target: SceneTarget, service: ServiceName) => Promise<void>): LoadScene[] =>
  services.map((service) => ({ name: `${name}:${service}`, run: (target) => act(target, service) }));

export const loadScenes: readonly LoadScene[] = [
  ...each("rollout", (target, service) => target.rollOut(service)),
  {
    name: "rollout:all",
    async run(target) {
      for (const service of services) await target.rollOut(service);
    },
  },
  ...each("kill", (target, service) => target.kill(service)),
  ...each("cut", (target, service) => target.cut?.(service, cutMs) ?? Promise.resolve()).map((scene): LoadScene => ({
    ...scene,
    needs: "cut",
  })),
  {
    name: "drain:all",
    needs: "evict",
    async run(target) {
      for (const service of services) await target.evict?.(service);
    },
  },
  ...servers.map((server) => ({
    name: `restart:${server}`,
    run: (target: SceneTarget) => target.restartServer(server),
  })),
  ...each("scale", async (target, service) => {
    await target.scale(service, 4);
    await delay(pauseMs);
    await target.scale(service, 2);
  }),
];

/** The scenes whose names begin with one of these; all of them without names. Throws when one fits none. */
export function chooseScenes(names: readonly string[]): LoadScene[] {
  const unknown = names.find((name) => !loadScenes.some((scene) => scene.name.startsWith(name)));
  if (unknown !== undefined)
    throw new Error(`no scene is called ${unknown}; there are ${loadScenes.map(({ name }) => name).join(", ")}`);
  return loadScenes.filter((scene) => names.length === 0 || names.some((name) => scene.name.startsWith(name)));
}

/** Why a target cannot play a scene; undefined: it can. */
export function missingAbility({ needs }: LoadScene, target: SceneTarget): string | undefined {
  if (needs === undefined || target[needs] !== undefined) return undefined;
  return needs === "cut" ? "it cannot cut connections to the bus" : "it has no nodes that can be drained";
}

/** Repeats a scene until the time is up, and at least once. */
export async function playScene(scene: LoadScene, target: SceneTarget, durationMs: number): Promise<void> {
  const endMs = performance.now() + durationMs;
  do {
    await scene.run(target);
    await delay(pauseMs);
  } while (performance.now() < endMs);
}
