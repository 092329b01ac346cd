// The exit codes of `parley`.

export const exitCodes = {
  ok: 0,
  error: 1,
  /** The command line is wrong; nothing was done. */
  usage: 2,
  /** The command succeeded and found a problem. */
  unhealthy: 3,
  /** Ended by Ctrl-C, by the convention of shells. */
  interrupted: 130,
} as const;
