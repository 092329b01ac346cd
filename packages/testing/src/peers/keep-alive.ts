// How long fakes keep idle HTTP connections open.

/**
 * As long as the usual proxies in front of platforms. Node's 5 s end at the same moment as a client's: on a busy machine a request is then
 * sent into a closing connection, and its outcome is unknown.
 */
export const keepAlive = { keepAliveTimeout: 75_000 };
