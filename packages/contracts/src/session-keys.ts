// Session keys. The session that begins with a route's first message is named like the route; later threads of the route have that name
// followed by their session id.

/** The thread that the owner's conversations on all channels share under the singleton policy. */
export const mainSessionKey = "main";

const separator = "~";

/** The key of a further thread of the route of `key`, which may be the key of any of its threads. */
export function threadKey(key: string, sessionId: string): string {
  return `${firstOf(key)}${separator}${sessionId}`;
}

/** The route of a session key: the same for all threads of a route. */
export function routeOfKey(key: string): string {
  return firstOf(key);
}

/** Whether `key` belongs to the first or a later thread of the route. */
export function isThreadOf(route: string, key: string): boolean {
  return key === route || firstOf(key) === route;
}

function firstOf(key: string): string {
  return key.replace(/~[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/, "");
}
