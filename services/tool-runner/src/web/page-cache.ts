// Caches recently fetched pages, so that reading on uses the same content without another request.

export interface CachedPage {
  /** After redirects. */
  url: string;
  title: string;
  text: string;
  /** The page exceeded the size limit. */
  cut: boolean;
}

const maxPages = 16;
const keptMs = 300_000;

export class PageCache {
  readonly #pages = new Map<string, { page: CachedPage; at: number }>();

  get(url: string, as: string): CachedPage | undefined {
    const entry = this.#pages.get(`${as} ${url}`);
    return entry === undefined || performance.now() - entry.at > keptMs ? undefined : entry.page;
  }

  put(url: string, as: string, page: CachedPage): void {
    const key = `${as} ${url}`;
    this.#pages.delete(key);
    this.#pages.set(key, { page, at: performance.now() });
    const [oldest] = this.#pages.keys();
    if (this.#pages.size > maxPages && oldest !== undefined) this.#pages.delete(oldest);
  }
}
