/** What went wrong, in the words of whoever threw it: JavaScript throws anything. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
