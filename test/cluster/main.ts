// npm run test:cluster -- --context <name>: tests the manifests in a Kubernetes cluster; `options.ts` has its command line. It runs only when it
// is called, and only with a context that the caller names.
import { execFileSync } from "node:child_process";
import { kubernetesTools } from "../deploy/support/kubernetes-tools.ts";
import { deleteNamespace } from "./deployment.ts";
import { openKubectl } from "./kubectl.ts";
import { CannotRun, parseOptions } from "./options.ts";
import { runSuite } from "./suite.ts";

/** The kubectl of the machine, which fits its clusters, or the one from npm. */
async function kubectlProgram(): Promise<string> {
  try {
    execFileSync("kubectl", ["version", "--client"], { stdio: "ignore" });
    return "kubectl";
  } catch {
    const program = (await kubernetesTools())?.kubectl;
    if (program === undefined) throw new CannotRun("there is no kubectl: install it, or let npm load it");
    return program;
  }
}

try {
  const options = parseOptions(process.argv.slice(2));
  const kubectl = openKubectl(await kubectlProgram(), options.context, options.namespace);
  const interrupted = (): void => {
    console.error(`interrupted: deleting the namespace ${options.namespace}`);
    void (options.keep ? Promise.resolve() : deleteNamespace(kubectl, options.namespace)).finally(() =>
      process.exit(130),
    );
  };
  const begin = performance.now();
  const say = (line: string) => console.log(`${Math.round((performance.now() - begin) / 1_000)} s: ${line}`);
  const { problems } = await runSuite(kubectl, options, say, () =>
    process.once("SIGINT", interrupted).once("SIGTERM", interrupted),
  );
  for (const problem of problems) console.log(problem);
  console.log(problems.length === 0 ? "no problems" : `${problems.length} problems`);
  process.exitCode = problems.length === 0 ? 0 : 1;
} catch (error) {
  if (!(error instanceof CannotRun)) throw error;
  console.error(error.message);
  process.exitCode = 2;
}
