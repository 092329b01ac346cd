// Names of sessions. A session that began with a route's first message is named like the route; later threads of the same
// route have its name with their id behind it.

/** The thread that the owner's conversations on all channels share in the singleton policy. */
export const mainSessionKey = "main";

const separator = "~";

/** The key of a further thread where `key` names the first one, or any of its threads. */
export function threadKey(key: string, sessionId: string): string {
  return `${firstOf(key)}${separator}${sessionId}`;
}

/** The route that a session's key names: the same for all threads of a route. */
export function routeOfKey(key: string): string {
  return firstOf(key);
}

/** Whether `key` names the first thread of a route or one of its later ones. */
export function isThreadOf(route: string, key: string): boolean {
  return key === route || firstOf(key) === route;
}

function firstOf(key: string): string {
  return key.replace(/~[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/, "");
}
