// A model with attachments: their contents are fetched before each call. A content that the provider refuses (a damaged
// image, a locked document) must not fail all later turns of its session, so it is omitted from then on.
import type { Contents } from "./attachment-contents.ts";
import { ModelError, wrapProvider, type ModelProvider, type ModelRequest } from "./provider.ts";

/** Matches provider errors about unreadable content. */
const aboutContent = /image|document|pdf|file|media|base64|page/i;
const remembered = 10_000;

export function withAttachments(provider: ModelProvider, contents: Contents): ModelProvider {
  /** Contents that the provider accepted and refused in this process. */
  const taken = new Set<string>();
  const refused = new Set<string>();

  const withContents = async (request: ModelRequest): Promise<ModelRequest> => {
    const shown = await contents.of(request.messages);
    for (const sha256 of refused) shown.delete(sha256);
    return { ...request, contents: shown };
  };
  const countTokens = provider.countTokens?.bind(provider);
  return wrapProvider(provider, {
    async stream(request, on, signal) {
      for (;;) {
        const complete = await withContents(request);
        const suspects = [...(complete.contents?.keys() ?? [])];
        try {
          const reply = await provider.stream(complete, on, signal);
          for (const sha256 of suspects) remember(taken, sha256);
          return reply;
        } catch (error) {
          if (suspects.length === 0 || !isAboutContent(error)) throw error;
          // Without new ones, which are omitted first, one that was accepted before is too much for this prompt.
          const fresh = suspects.filter((sha256) => !taken.has(sha256));
          for (const sha256 of fresh.length > 0 ? fresh : suspects) remember(refused, sha256);
        }
      }
    },
    ...(countTokens === undefined
      ? {}
      : { countTokens: async (request, signal) => countTokens(await withContents(request), signal) }),
  });
}

function isAboutContent(error: unknown): boolean {
  return error instanceof ModelError && error.failure === "invalid" && aboutContent.test(error.message);
}

function remember(known: Set<string>, sha256: string): void {
  known.add(sha256);
  const [oldest] = known;
  if (known.size > remembered && oldest !== undefined) known.delete(oldest);
}
