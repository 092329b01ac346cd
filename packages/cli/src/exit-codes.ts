// What `parley` ends with.

export const exitCodes = {
  ok: 0,
  error: 1,
  /** The command line is wrong; nothing was done. */
  usage: 2,
  /** The command worked, and what it looked at is not well. */
  unhealthy: 3,
  /** Ended by Ctrl-C, as a shell counts it. */
  interrupted: 130,
} as const;
