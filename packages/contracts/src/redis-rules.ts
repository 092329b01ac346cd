// The ACL rules of agent-core's Redis user: the keys of its namespace, and the commands of its queue and its lock.

/** The name of the Redis user that agent-core logs in as. */
export const redisUser = "agent-core";

/** Commands that a client needs to connect, and those that call scripts and transactions. */
const connection = ["ping", "hello", "info", "quit", "client|setname", "client|id"];
const scripts = ["eval", "evalsha", "multi", "exec", "discard", "time"];

/** Every command is restricted to the keys of the namespace. Commands that list or count all keys of the server are missing. */
const data = [
  ["exists", "type", "del", "unlink", "pttl", "pexpire", "pexpireat"],
  ["get", "set", "incr", "incrby"],
  ["hdel", "hexists", "hget", "hgetall", "hincrby", "hlen", "hmget", "hmset", "hset"],
  ["lindex", "llen", "lpop", "lpos", "lpush", "lrange", "lrem", "lset", "ltrim", "rpop", "rpoplpush", "rpush"],
  ["sadd", "scard", "sismember", "smembers", "srem"],
  ["xadd", "xdel", "xlen", "xrange", "xtrim"],
  ["bzpopmin", "zadd", "zcard", "zcount", "zlexcount", "zpopmin", "zrange", "zrangebylex", "zrangebyscore", "zrem"],
  ["zremrangebyrank", "zremrangebyscore", "zrevrange", "zrevrangebyscore", "zscore"],
].flat();

/** The rules of the user in Redis's ACL syntax, without its password. */
export function redisRules(namespace: string): string[] {
  const commands = [...connection, ...scripts, ...data].map((command) => `+${command}`);
  return ["resetchannels", "resetkeys", `~${namespace}:*`, "-@all", ...commands];
}
