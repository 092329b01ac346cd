// The published Claude Agent SDK against a cluster: `parley sdk` is its executable, and nothing of it is replaced.
import {
  query,
  type Options,
  type SDKMessage,
  type SDKResultMessage,
  type SDKUserMessage,
} from "@anthropic-ai/claude-agent-sdk";
import { cliPrograms, untilValue, type TestCluster } from "@parley/testing";

interface SdkRun {
  readonly messages: readonly SDKMessage[];
  readonly results: readonly SDKResultMessage[];
  /** The last result. Throws without one. */
  readonly result: SDKResultMessage;
  /** What the executable has written to standard error, as far as it has arrived: the messages do not wait for it. */
  readonly stderr: string;
  /** Resolves when standard error matches. */
  untilStderr(pattern: RegExp): Promise<unknown>;
  /** The error with which the SDK ended the iteration; undefined: it ended normally. */
  readonly failure: Error | undefined;
  of<T extends SDKMessage["type"]>(type: T): Extract<SDKMessage, { type: T }>[];
  system(subtype: string): Extract<SDKMessage, { type: "system" }>[];
}

type Prompt = string | AsyncIterable<SDKUserMessage>;
type SdkQuery = ReturnType<typeof query>;

export interface SdkClient {
  /** Starts a query; the caller iterates over it. */
  start(prompt: Prompt, options?: Options): SdkQuery;
  /** Runs a query to its end. `watch` sees each message as it arrives. */
  run(prompt: Prompt, options?: Options, watch?: (message: SDKMessage, query: SdkQuery) => unknown): Promise<SdkRun>;
}

export function sdkClient(cluster: Pick<TestCluster, "home">): SdkClient {
  const { PATH = "", HOME = "", NODE_COMPILE_CACHE = "" } = process.env;
  const start = (prompt: Prompt, options: Options = {}): SdkQuery =>
    query({
      prompt,
      options: {
        pathToClaudeCodeExecutable: cliPrograms()["parley-sdk"],
        env: { PATH, HOME, NODE_COMPILE_CACHE, PARLEY_HOME: cluster.home },
        ...options,
      },
    });
  return {
    start,
    async run(prompt, options, watch) {
      const messages: SDKMessage[] = [];
      let stderr = "";
      const checks = new Set<() => void>();
      const heard = (text: string): void => {
        stderr += text;
        for (const check of checks) check();
      };
      let failure: Error | undefined;
      const running = start(prompt, { stderr: heard, ...options });
      try {
        for await (const message of running) {
          messages.push(message);
          await watch?.(message, running);
        }
      } catch (error) {
        failure = error instanceof Error ? error : new Error(String(error));
      }
      const results = messages.filter((message) => message.type === "result");
      return {
        messages,
        results,
        get stderr() {
          return stderr;
        },
        untilStderr: (pattern) =>
          untilValue(
            () => pattern.exec(stderr),
            (check) => {
              checks.add(check);
              return () => checks.delete(check);
            },
            () => `${String(pattern)} in ${JSON.stringify(stderr)}`,
          ),
        failure,
        get result() {
          const result = results.at(-1);
          if (result === undefined) throw new Error(`no result: ${failure?.message ?? stderr}`);
          return result;
        },
        of: <T extends SDKMessage["type"]>(type: T) =>
          messages.filter((message): message is Extract<SDKMessage, { type: T }> => message.type === type),
        system: (subtype) =>
          messages.filter((message): message is Extract<SDKMessage, { type: "system" }> => {
            return message.type === "system" && message.subtype === subtype;
          }),
      };
    },
  };
}

/** The results of the tool calls of a run and its sub-agents, as the model received them. */
export function toolResults(run: SdkRun): string[] {
  const blocks = run.of("user").flatMap(({ message: { content } }) => (typeof content === "string" ? [] : content));
  return blocks.flatMap((block) =>
    block.type === "tool_result" && typeof block.content === "string" ? [block.content] : [],
  );
}

type Content = SDKUserMessage["message"]["content"];

export function userMessage(content: Content): SDKUserMessage {
  return { type: "user", message: { role: "user", content }, parent_tool_use_id: null };
}

/** A stream of messages to which a test adds while the query runs. */
export class Inputs implements AsyncIterable<SDKUserMessage> {
  readonly #queue: SDKUserMessage[] = [];
  #wake: () => void = () => undefined;
  #ended = false;

  constructor(...first: readonly Content[]) {
    this.#queue.push(...first.map(userMessage));
  }

  send(content: Content): void {
    this.#queue.push(userMessage(content));
    this.#wake();
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<SDKUserMessage> {
    for (;;) {
      const next = this.#queue.shift();
      if (next !== undefined) yield next;
      else if (this.#ended) return;
      else {
        const { promise, resolve } = Promise.withResolvers<void>();
        this.#wake = resolve;
        await promise;
      }
    }
  }
}
