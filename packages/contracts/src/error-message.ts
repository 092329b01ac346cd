/** The message of a thrown value; JavaScript can throw values that are not errors. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
